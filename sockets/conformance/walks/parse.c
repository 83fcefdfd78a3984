// SPDX-License-Identifier: Apache-2.0 OR MIT
// The text of a walk: `tcp` or `unix`, then steps as `A.name` or `A.name=number`.
#include "walk.h"

static int parse_step(struct step *step, const char *word) {
    if ((word[0] != 'A' && word[0] != 'B') || word[1] != '.')
        return 0;
    *step = (struct step){.side = word[0] - 'A'};
    return sscanf(word + 2, "%23[a-z_]=%d", step->name, &step->number) >= 1;
}

int parse_walk(struct walk *walk, char *line) {
    char *rest = NULL, *kind = strtok_r(line, " ", &rest);
    if (!kind || (strcmp(kind, "tcp") != 0 && strcmp(kind, "unix") != 0))
        return 0;
    walk->is_unix = strcmp(kind, "unix") == 0;
    walk->count = 0;
    for (char *word; (word = strtok_r(NULL, " ", &rest)) && walk->count < STEPS_MAX;) {
        if (!parse_step(walk->steps + walk->count++, word))
            return 0;
    }
    return 1;
}
