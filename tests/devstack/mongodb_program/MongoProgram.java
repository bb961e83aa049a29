import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** A server that speaks MongoDB's protocol, on a port of 127.0.0.1, with its data in memory. */
public final class MongoProgram {
    private MongoProgram() {}

    public static void main(String[] arguments) throws InterruptedException {
        MongoServer server = new MongoServer(new MemoryBackend());
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.currentThread().join();
    }
}
