/** A live set that grows to so many MiB, with garbage beside it, read all over so many times, and checked. */
public class Grow {
    static final int WORDS = 1 << 17; // 1 MiB

    static long mix(long x) {
        x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
        x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
        return x ^ (x >>> 31);
    }

    static long[] chunk(int i) {
        long[] c = new long[WORDS];
        for (int w = 0; w < WORDS; w++) c[w] = mix((long) i * WORDS + w);
        return c;
    }

    static void check(long[] c, int i) {
        for (int w = 0; w < WORDS; w++)
            if (c[w] != mix((long) i * WORDS + w)) System.exit(4);
    }

    public static void main(String[] args) {
        int mib = Integer.parseInt(args[0]);
        long reads = Long.parseLong(args[1]), random = 0;
        long[][] live = new long[mib][];
        for (int i = 0; i < mib; i++) {
            live[i] = chunk(i);
            for (long r = reads * i / mib; r < reads * (i + 1) / mib; r++) {
                int k = (int) Long.remainderUnsigned(mix(++random), i + 1);
                check(live[k], k);
                if (r % 8 == 0) live[k] = live[k].clone(); // the old one is garbage
            }
        }
        for (int i = 0; i < mib; i++) check(live[i], i);
    }
}
