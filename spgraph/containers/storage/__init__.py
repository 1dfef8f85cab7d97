"""What containers are made of: arrays on a device, their types, checked CSR."""
