package org.airflowconnect.host;

import org.apache.kafka.common.header.Headers;

/**
 * A record as bytes.
 *
 * @param partition -1: not chosen
 * @param offset -1: none, for records of sources
 * @param timestamp milliseconds; -1: none
 */
record Message(String topic, int partition, long offset, long timestamp, byte[] key, byte[] value, Headers headers) {}
