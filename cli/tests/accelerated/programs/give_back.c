// SPDX-License-Identifier: Apache-2.0 OR MIT
// A statically linked echo server, which no library can be loaded into.
#include <unistd.h>

static char bytes[50000];

int main(void) {
    for (;;) {
        ssize_t count = read(0, bytes, sizeof bytes);
        if (count <= 0)
            return count < 0;
        for (ssize_t at = 0; at < count;) {
            ssize_t written = write(1, bytes + at, (size_t)(count - at));
            if (written < 0)
                return 1;
            at += written;
        }
    }
}
