// The loop of a closure that one launch runs to its end: on one GPU, and on peers. closure.cu says
// what buckets and thresholds are for.

// From values that are cleared to the least fixed point, or to a bucket that does not settle. Sources
// are counted from the first own vertex. False where a barrier failed.
DEVICE bool run(const I* sources, const Z* source_values, i64 number_of_sources) {
    if (!Exchange::meet_here()) return false;
    begin(sources, source_values, number_of_sources);
    if (!Exchange::meet_all(true)) return false;
    BLOCK_SETS(begin_buckets(s, Exchange::best());)
    begin_queue(sources, number_of_sources);
    if (!Exchange::meet_here()) return false;
    for (;;) {
        if (!Exchange::settle()) return false;
        if (!ORDERED || Exchange::gave_up()) return true;
        if (ends_threshold(s)) {
            if (!pull_behind_threshold()) return false;
            if (Exchange::PULLS_TWICE && s.vertices) {
                BLOCK_SETS(s.progress.rounds = s.progress.edges = 0;)
                continue;
            }
        }
        BLOCK_SETS(end_bucket(s, s.progress, s.m);)
        const Z next = next_limit(s);
        next_bucket(next);
        if (!Exchange::meet_all(true)) return false;
        const bool empty = Exchange::is_empty();
        const Z best = Exchange::best();
        if (is_last(s, empty, best)) return true;
        BLOCK_SETS(move_on(s, empty, best, next);)
    }
}
