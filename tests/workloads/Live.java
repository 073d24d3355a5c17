// SPDX-License-Identifier: MIT
package workload;

import java.util.ArrayList;
import java.util.List;

/**
 * Live COUNT: allocates COUNT arrays of 20,000 bytes, of which every tenth stays in use, then collects garbage. Says
 * "BYTES kept dropped". With -Dlingers=MS it then keeps them for so long, drops them, collects garbage again, and lives
 * for as long.
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

    public static void main(String[] args) throws Exception {
        int count = (int) Workload.argument(args, 0, 1000);
        Workload.ready();
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
