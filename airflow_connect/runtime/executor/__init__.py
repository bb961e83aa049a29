"""The executors: MANY processes. They read Kafka, convert, lay out, encode and stage; they never publish or commit."""
