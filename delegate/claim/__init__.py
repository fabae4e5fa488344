"""Which nodes go to the device, and why the others do not. Pure functions of data; nothing here lowers or builds."""
