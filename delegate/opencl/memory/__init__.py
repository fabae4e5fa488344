"""The memory of plans on a device: buffers, shared and mapped memory, copies, and users' buffers."""
