#!/usr/bin/env bash
# Hazelcast 5.7.0, one member: while a thread holds IMap.lock(key), put and executeOnKey of another thread wait; putAll, setAll and executeOnKeys change the
# locked entry at once, without an error. Needs a JDK and Maven. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -B -q dependency:copy -Dartifact=com.hazelcast:hazelcast:5.7.0 -DoutputDirectory="$folder"
cat >Probe.java <<'JAVA'
import com.hazelcast.config.*;
import com.hazelcast.core.*;
import com.hazelcast.map.*;
import java.util.*;
import java.util.concurrent.*;

public class Probe {
    public static void main(String[] none) throws Exception {
        Config config = new Config();
        config.setProperty("hazelcast.logging.type", "none").setProperty("hazelcast.phone.home.enabled", "false");
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        config.getJetConfig().setEnabled(false);
        HazelcastInstance member = Hazelcast.newHazelcastInstance(config);
        IMap<String, Integer> stock = member.getMap("stock");
        EntryProcessor<String, Integer, Object> write = entry -> { entry.setValue(7); return null; };
        Map<String, Runnable> writers = new LinkedHashMap<>();
        writers.put("put", () -> stock.put("piece", 7));
        writers.put("putAll", () -> stock.putAll(Map.of("piece", 7)));
        writers.put("setAll", () -> stock.setAll(Map.of("piece", 7)));
        writers.put("executeOnKey", () -> stock.executeOnKey("piece", write));
        writers.put("executeOnKeys", () -> stock.executeOnKeys(Set.of("piece"), write));
        for (String name : writers.keySet()) {
            stock.put("piece", 100);
            stock.lock("piece");
            CompletableFuture<Void> writer = CompletableFuture.runAsync(writers.get(name));
            String what = "is done";
            try {
                writer.get(3, TimeUnit.SECONDS);
            } catch (TimeoutException e) {
                what = "waits";
            }
            System.out.println("Hazelcast " + member.getCluster().getLocalMember().getVersion() + ": another thread's " + name + " " + what
                + ", the lock's holder reads " + stock.get("piece"));
            stock.unlock("piece");
            writer.get();
        }
        System.exit(0);
    }
}
JAVA
java -cp hazelcast-5.7.0.jar Probe.java 2>/dev/null | tee seen
diff seen - <<'SEEN'
Hazelcast 5.7.0: another thread's put waits, the lock's holder reads 100
Hazelcast 5.7.0: another thread's putAll is done, the lock's holder reads 7
Hazelcast 5.7.0: another thread's setAll is done, the lock's holder reads 7
Hazelcast 5.7.0: another thread's executeOnKey waits, the lock's holder reads 100
Hazelcast 5.7.0: another thread's executeOnKeys is done, the lock's holder reads 7
SEEN
