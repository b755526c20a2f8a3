"""GPU UltraClusters on AWS from one typed environment file."""
