// A matrix of few entries as tasks of a warp each, made by warp_tasks.py: its entries lie in the order
// in which the lanes of warps read them, so that a warp knows the addresses of its next task's entries
// before it has begun that task (rows side by side: SELL-C-sigma, Kreutzer et al. 2014).
//
// Step s of the entries has one for each of 32 lanes: columns[32 * s + lane], NONE for none. A column
// that most rows have, a hub, stands there as hub_entry(its number among the hubs).

constexpr int NONE = -1;
// Its own inverse.
DEVICE int hub_entry(int number) { return NONE - 1 - number; }

// What `target` of a task is:
enum TaskKind {
    ROWS,  // the place of its first row in the list of short rows; each lane sums a row
    WHOLE, // a row that the lanes sum together; -1: there is no task
    PART   // the number of a split row, of which this is a piece; the piece is numbered as the task
};
struct alignas(16) Task {
    int first, steps; // its steps
    int target, kind;
};

// A row that is summed in pieces, tasks first to first + pieces.
struct alignas(16) Split {
    int first, pieces, row, unused;
};
