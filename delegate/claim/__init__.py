"""The nodes that go to the device, and the reasons of the others. Pure functions of data."""
