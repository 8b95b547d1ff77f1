"""The field in one table: protocols and methods as data, the runs they lack, what each method costs."""
