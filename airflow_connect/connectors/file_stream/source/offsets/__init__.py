"""Step 4: source partitions and offsets, and files that were renamed, rotated, or read by Kafka Connect before."""
