"""The commands of the command line, one file each. They are imported only when they are called."""
