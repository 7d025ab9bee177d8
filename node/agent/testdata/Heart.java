import java.nio.file.Files;
import java.nio.file.Path;

/** Collects garbage beside so many MiB of small objects that live, all the time, and prints a heartbeat every 100 ms. */
public class Heart {
    static final int PER_MIB = (1 << 20) / 32; // a node takes 24 bytes, and its place in the array 4 or 8

    static class Node {
        Node next;
        long value;
    }

    public static void main(String[] args) throws Exception {
        Node[] all = new Node[Integer.parseInt(args[0]) * PER_MIB];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Node();
            all[i].value = i;
            all[i].next = all[(int) (i * 0x9E3779B97F4A7C15L >>> 33) % (i + 1)]; // far away
        }
        Thread heart = new Thread(() -> {
            while (true) {
                System.out.println(System.currentTimeMillis());
                try {
                    Thread.sleep(100);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        heart.setDaemon(true);
        heart.start();
        while (!Files.exists(Path.of(args[1]))) System.gc();
        for (int i = 0; i < all.length; i++) if (all[i].value != i) System.exit(9);
    }
}
