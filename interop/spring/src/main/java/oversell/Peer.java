package oversell;

import java.io.IOException;

/** A Java process that is told by {@link Lines} what to do with Spring, Tomcat and the JVM's own classes. */
public final class Peer {
    private Peer() {
    }

    public static void main(String[] args) throws IOException {
        Lines.follow(new Commands());
    }
}
