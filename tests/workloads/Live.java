// SPDX-License-Identifier: MIT
package workload;

import java.util.ArrayList;
import java.util.List;

/**
 * Live COUNT: allocates COUNT arrays of 20,000 bytes, of which every tenth stays in use, then collects garbage. Says
 * "BYTES kept dropped". With -Dlingers=MS it then keeps them for so long, drops them, collects garbage again, and lives
 * for as long. With -Dleaks=MS it holds 20 MB instead, and for so long allocates arrays, of which one in a thousand
 * stays; says "LEAKED bytes" each tenth of a second.
 */
public final class Live {
    static final int BYTES = 20000;
    static final List<byte[]> kept = new ArrayList<>();
    static byte[] last;

    static void keep() {
        kept.add(new byte[BYTES]);
    }

    static void drop() {
        last = new byte[BYTES];
    }

    static void hold() {
        for (int i = 0; i < 1000; i++)
            kept.add(new byte[BYTES]);
    }

    static void leak(long ms) throws InterruptedException {
        long begin = System.currentTimeMillis(), said = begin, leaked = 0;
        hold();
        for (int i = 0; System.currentTimeMillis() - begin < ms; i++) {
            if (i % 1000 == 0) {
                keep();
                leaked += BYTES;
            } else {
                drop();
            }
            if (i % 20 == 0)
                Thread.sleep(1);
            if (System.currentTimeMillis() - said >= 100) {
                said = System.currentTimeMillis();
                Workload.say("LEAKED " + leaked);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int count = (int) Workload.argument(args, 0, 1000);
        Workload.ready();
        if (Long.getLong("leaks", 0) > 0)
            leak(Long.getLong("leaks"));
        for (int i = 0; i < count; i++) {
            if (i % 10 == 0)
                keep();
            else
                drop();
        }
        last = null;
        System.gc();
        long lingers = Long.getLong("lingers", 0);
        if (lingers > 0) {
            Workload.say("KEPT");
            Thread.sleep(lingers);
            kept.clear();
            System.gc();
            Thread.sleep(lingers);
        }
        Workload.say("BYTES " + (long) (count / 10) * BYTES + " " + (long) (count - count / 10) * BYTES);
        Workload.done();
    }
}
