"""The commands, one file each, imported only when they are called."""
