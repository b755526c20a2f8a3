"""What moto lacks, added to it from outside: importing this package changes nothing, `activate()` does."""
