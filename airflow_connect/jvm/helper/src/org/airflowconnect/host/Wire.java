package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.List;

/**
 * Messages between this JVM and its parent: a header of 16 bytes, JSON, a body. {@code airflow_connect/jvm/wire.py} is
 * the other side.
 *
 * <p>Everything passes through one small direct buffer for each direction. A channel given a large heap array would
 * make a direct copy of the same size for it, and keep that.
 */
final class Wire implements Closeable {
    private static final int HEADER_BYTES = 16;
    private static final int STAGING_BYTES = 256 * 1024;
    private static final byte[] PADDING = new byte[FrameWriter.ALIGNMENT];

    private final SocketChannel channel;
    private final ByteBuffer in = staging().limit(0);
    private final ByteBuffer out = staging();

    private Wire(SocketChannel channel) {
        this.channel = channel;
    }

    static Wire connect(Path socket) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        channel.connect(UnixDomainSocketAddress.of(socket));
        return new Wire(channel);
    }

    /** The next request, or null if the parent has closed the connection. */
    Request receive() throws IOException {
        byte[] header = new byte[HEADER_BYTES];
        if (!fill(header, true)) {
            return null;
        }
        ByteBuffer lengths = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN);
        byte[] json = new byte[lengths.getInt(0)];
        byte[] body = new byte[Math.toIntExact(lengths.getLong(8))];
        fill(json, false);
        fill(body, false);
        return new Request(Json.read(json), body);
    }

    void send(ObjectNode json) throws IOException {
        send(json, List.of());
    }

    /** Sends one message; each buffer starts at a multiple of 8 in its body. */
    void send(ObjectNode json, List<Bytes> buffers) throws IOException {
        byte[] text = Json.bytes(json);
        long length = 0;
        for (Bytes buffer : buffers) {
            length += FrameWriter.aligned(buffer.size());
        }
        byte[] header = new byte[HEADER_BYTES];
        ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).putInt(text.length).putInt(0).putLong(length);
        put(header, header.length);
        put(text, text.length);
        for (Bytes buffer : buffers) {
            put(buffer.array(), buffer.size());
            put(PADDING, (int) (FrameWriter.aligned(buffer.size()) - buffer.size()));
        }
        flush();
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }

    private static ByteBuffer staging() {
        return ByteBuffer.allocateDirect(STAGING_BYTES);
    }

    /** Reads as many bytes as the array has; false: the connection has ended before the first of them. */
    private boolean fill(byte[] target, boolean mayEnd) throws IOException {
        int position = 0;
        while (position < target.length) {
            if (!in.hasRemaining()) {
                in.clear();
                int count = channel.read(in);
                in.flip();
                if (count < 0 && position == 0 && mayEnd) {
                    return false;
                }
                if (count < 0) {
                    throw new EOFException("in the middle of a message");
                }
            }
            int count = Math.min(in.remaining(), target.length - position);
            in.get(target, position, count);
            position += count;
        }
        return true;
    }

    private void put(byte[] source, int length) throws IOException {
        int position = 0;
        while (position < length) {
            if (!out.hasRemaining()) {
                flush();
            }
            int count = Math.min(out.remaining(), length - position);
            out.put(source, position, count);
            position += count;
        }
    }

    private void flush() throws IOException {
        out.flip();
        while (out.hasRemaining()) {
            channel.write(out);
        }
        out.clear();
    }
}
