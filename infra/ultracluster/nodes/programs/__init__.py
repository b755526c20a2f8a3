"""Programs that nodes run as they are: files of their own, with Python's standard library alone, from 3.9 on."""
