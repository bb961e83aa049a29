"""What Kafka knows of a connector between its runs: lag, offsets, history. Reads only."""
