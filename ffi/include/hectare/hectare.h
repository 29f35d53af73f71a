// libhectare: distributed shared memory for machine-learning training, for programs in C and C++.
//
// A program keeps its state in areas: named, versioned memory with exactly one writer each. Reads and writes are
// ordinary loads and stores; the library brings changes to the other workers at points that the program chooses.
// In short:
//
//     ha_job *job;  ha_worker *worker;  ha_area *model;  void *data;  double *w;
//     ha_job_embedded(NULL, &job);                      // or ha_job_open: also under `hectare run`
//     ha_worker_join(job, &worker);                     // in each thread; or ha_run
//     ha_area_create(worker, "model", HA_F64, n, NULL, &model);
//     ha_area_writer(model, &data);  w = (double *)data;
//     w[i] = 1.0;  ha_log(model, i, 1);                 // log the change
//     ha_service(worker);                               // publish now and then, or
//     ha_barrier(worker);                               // publish and wait for all
//
// Conventions:
//
// - Every function returns an ha_status, HA_OK or the kind of failure, and ha_last_error() has the details; the few that
//   return something else say so. Results go to places that the caller gives. When a function fails, nothing has changed and
//   no result is stored, unless it says otherwise. No function ends the program.
// - A thread leaves before it ends (ha_worker_leave, ha_observer_close). One that ends as a worker or an observer ends
//   the program, with a message: other threads may still use its pointers and views, and nothing protects them any
//   longer. A program may end with workers; a destructor of pthread_key_create may leave for its thread.
// - Handles (ha_job, ha_worker, ha_area, ...) are opaque. A null handle is refused with HA_NULL; one that was closed,
//   or is of another kind, with HA_BAD_HANDLE. A closed handle is recognized until 256 others of its kind were closed
//   after it. A pointer that never was a handle, but memory of the program's, is refused if its first eight bytes do
//   not happen to be a handle's; one that points nowhere ends the program, as everywhere in C.
// - A worker, and everything that belongs to it, is for the thread that made it: HA_WRONG_THREAD otherwise.
// - Synchronization points are ha_service, ha_sync, ha_barrier, and the functions whose comments say so. There,
//   publications of other workers become visible, and pointers for reading become invalid.
// - With HECTARE_CHECK=1 in the environment, writes that a worker did not log are found at its next synchronization
//   point, which completes, reports them on the standard error output and returns HA_UNLOGGED. Run a new program once
//   with it.
// - Structs that may grow begin with a size field. Set it to sizeof the struct: ha_..._init does, and zeroes the rest,
//   which means the defaults. So programs that were compiled with an older header still work.
// - Text is UTF-8 and ends in a zero byte. Times are in nanoseconds. Ranges are in elements: first, count.
// - Under each function, "Pointers" has the requirements on its pointers (null is refused where it makes no sense),
//   "Thread" the threads that may call it, and "Fails" its failures besides HA_NULL, HA_BAD_HANDLE and HA_WRONG_THREAD.
//   HA_FORKED means that a process that was forked has to open the job by itself.
// - Callbacks must not let C++ exceptions out, and must not longjmp over the library.
//
// C99 and C++11. Link with -lhectare (`pkg-config --cflags --libs hectare`, or CMake's find_package(hectare)).
//
// Made by cbindgen from the library's sources; do not edit.

#ifndef HECTARE_H
#define HECTARE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Time-outs are in nanoseconds.
#define HA_MICROSECOND UINT64_C(1000)
#define HA_MILLISECOND UINT64_C(1000000)
#define HA_SECOND UINT64_C(1000000000)
// A time-out that never comes.
#define HA_FOREVER UINT64_MAX


// The version of this interface. Its major part, `HA_ABI_VERSION / 1000`, is the number of the shared library
// (`libhectare.so.0`) and changes when a program has to be compiled again; the rest grows with what is added.
#define HA_ABI_VERSION 3

// The outcome of a call. `HA_OK` is 0; every other value is a failure, after which nothing has changed unless
// the function says so. `ha_last_error` has the details.
enum ha_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Success.
    HA_OK = 0,
    // A pointer that must not be null is null.
    HA_NULL = 1,
    // A handle that is closed, of another kind, or no handle at all.
    HA_BAD_HANDLE = 2,
    // An argument is not one of its values, or text is not UTF-8.
    HA_BAD_ARGUMENT = 3,
    // The size field of a struct, or the size of a buffer, fits no version of this library.
    HA_BAD_SIZE = 4,
    // The program was compiled with a header that does not go with this library.
    HA_ABI_MISMATCH = 5,
    // A range lies outside the area.
    HA_OUT_OF_RANGE = 6,
    // The handle belongs to another thread.
    HA_WRONG_THREAD = 7,
    // A synchronization point, while a view is open (`ha_view_close`).
    HA_VIEW_OPEN = 8,
    // The worker is in the middle of another call: this one came from a callback.
    HA_BUSY = 9,
    // The area holds elements of another type.
    HA_WRONG_TYPE = 10,
    // An area or group name is not a path of non-empty parts, or too long.
    HA_INVALID_NAME = 11,
    // An area of this name exists.
    HA_NAME_TAKEN = 12,
    // No area of this name exists.
    HA_NO_SUCH_AREA = 13,
    // The area was deleted.
    HA_DELETED = 14,
    // The area's options, or the arguments of a reducer or array, make no sense.
    HA_INVALID_AREA = 15,
    // The job's settings make no sense.
    HA_INVALID_CONFIG = 16,
    // There is not enough memory.
    HA_OUT_OF_MEMORY = 17,
    // A limit of the job is reached: workers, observers, pins or areas.
    HA_LIMIT = 18,
    // The worker does not own the area (any more).
    HA_NOT_OWNER = 19,
    // The worker owns the area already.
    HA_ALREADY_OWNER = 20,
    // The area cannot be claimed: its owner is alive, here or on another host.
    HA_OWNER_ALIVE = 21,
    // Whoever could have given the area is dead or has let go of it: claim it.
    HA_OWNER_GONE = 22,
    // The area has no reader copy.
    HA_NO_READER_COPY = 23,
    // The area is not lent to its readers.
    HA_NOT_LENT = 24,
    // There is no such worker, or it is dead, or on another host.
    HA_NO_SUCH_WORKER = 25,
    // Another live worker has the rank.
    HA_RANK_TAKEN = 26,
    // A handle was used with one of another job.
    HA_OTHER_JOB = 27,
    // A wait ended by its time limit.
    HA_TIMED_OUT = 28,
    // The descriptor does not belong to a job, or to one of another version of the library.
    HA_NOT_A_JOB = 29,
    // The daemon refused, or could not be reached.
    HA_DAEMON = 30,
    // A system call failed.
    HA_SYSTEM = 31,
    // This process was forked after the job was opened: it must open the job itself.
    HA_FORKED = 32,
    // A callback of the program reported a failure.
    HA_CALLBACK = 33,
    // A defect of this library: please report it, with `ha_last_error`.
    HA_INTERNAL = 34,
    // Under `HECTARE_CHECK=1`: this worker wrote to an area of its own and did not log that. The synchronization point
    // that returns this has completed.
    HA_UNLOGGED = 35,
    // The job, which is on several hosts, has ended because one of them failed; `ha_last_error` names it.
    HA_PEER_FAILED = 36,
    // Another host has the area, and this one cannot have it: it has no reader copies, or no place here, for instance.
    HA_NOT_SHARED = 37,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_status ha_status;
#else
typedef int32_t ha_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Element types of areas.
//
// A process that attaches to an area names the type that it was created with. Structs are areas of `HA_U8` with rows
// of the struct's size (`ha_area_options.row`).
enum ha_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // 8 bits, unsigned; also bytes of any kind.
    HA_U8 = 1,
    // 8 bits, signed.
    HA_I8 = 2,
    // 16 bits, unsigned.
    HA_U16 = 3,
    // 16 bits, signed.
    HA_I16 = 4,
    // 32 bits, unsigned.
    HA_U32 = 5,
    // 32 bits, signed.
    HA_I32 = 6,
    // 64 bits, unsigned.
    HA_U64 = 7,
    // 64 bits, signed.
    HA_I64 = 8,
    // `float`.
    HA_F32 = 9,
    // `double`.
    HA_F64 = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_type ha_type;
#else
typedef uint32_t ha_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How values of several areas become one.
//
// Integers wrap on overflow; a NaN in any input makes the result NaN. Inputs are combined in their order, so results
// are the same bits for any number of workers.
enum ha_operation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The sum.
    HA_SUM = 1,
    // The sum divided by how many were summed; integers round toward zero.
    HA_MEAN = 2,
    // The largest; NaN where any is NaN.
    HA_MAX = 3,
    // In a reducer: the value of the input that changed the element since the last run; of several, the last in the
    // order of inputs. In an array: the value of the last member that names the element.
    HA_LAST = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_operation ha_operation;
#else
typedef uint32_t ha_operation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a worker, as seen from outside.
enum ha_worker_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It joins or leaves.
    HA_WORKER_CHANGING = 0,
    // It comes to rounds.
    HA_WORKER_LIVE = 1,
    // It did not come to a round in time; rounds do not wait for it until it is back.
    HA_WORKER_STRAGGLER = 2,
    // Its thread is gone; its areas can be claimed.
    HA_WORKER_DEAD = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_worker_state ha_worker_state;
#else
typedef uint32_t ha_worker_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How the library learns what was written to an area.
enum ha_tracking
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The program says so: `ha_log` and its relatives.
    HA_TRACK_LOGGED = 0,
    // Not at all: whenever the program says that something was written (`ha_log_all`), the whole area is copied. For
    // small areas that change as a whole.
    HA_TRACK_WHOLE = 1,
    // By page protection (Linux 6.7), or where the kernel has none, by comparing the area at every publication. For
    // update loops that cannot be touched.
    HA_TRACK_AUTOMATIC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_tracking ha_tracking;
#else
typedef uint32_t ha_tracking;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The answer to a living worker that stands still in the middle of a publication, where it cannot be left behind.
enum ha_stall_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The others wait.
    HA_STALL_WAIT = 0,
    // After `stall_after_ns`, its process is killed, unless it is the one that would have to send the signal.
    HA_STALL_KILL = 1,
    // After `stall_after_ns`, the reader copy that it was writing is pinned, away from others; for areas with three or more.
    HA_STALL_PIN = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ha_stall_policy ha_stall_policy;
#else
typedef uint32_t ha_stall_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An area as one worker has it: attached for reading, or owned, which is the right to write it.
//
// The handle belongs to the worker, and so to its thread. It remains the same when ownership comes and goes.
typedef struct ha_area ha_area;

// An array that several workers write, each in an area of its own, with a master that they read. For programs whose
// threads share one vector: each worker works on its own copy, and at the borders of batches, reductions bring what
// was written into the master, and `ha_array_map` brings what others wrote into the copy.
//
// One worker, the first member, combines everything. That is the simple way, not the fast one: where each row has
// one next reader, let it copy the row out of the writer's area; where sums are wanted, see `ha_reducer`.
typedef struct ha_array ha_array;

// A job: workers and areas that synchronize together.
//
// The handle may be used by all threads at once; only `ha_job_close` must not run beside another call with it.
// Workers and areas that were made with it go on when it is closed.
typedef struct ha_job ha_job;

// Somebody who reads areas without being a worker: evaluation, monitoring. It never delays a worker; the publication
// of an area is put off while all of its copies are being read, so give such areas two reader copies.
//
// The handle belongs to the thread that made it.
typedef struct ha_observer ha_observer;

// Combines areas of equal length into one result, cooperatively: each member reduces its share of the elements into
// an area of its own.
typedef struct ha_reducer ha_reducer;

// A worker: a thread that is registered with a job, owns areas, and takes part in publications.
//
// The handle belongs to the thread that made it; every function with it, or with an area of it, refuses other
// threads with `HA_WRONG_THREAD`.
typedef struct ha_worker ha_worker;

// Settings of a job. Zero in a field is the default; `ha_job_options_init` sets all to it.
typedef struct ha_job_options {
    // `sizeof(ha_job_options)`: tells which fields there are.
    size_t size;
    // Address space for areas, in bytes; memory is taken only for areas that exist. Default: twice the host's memory.
    uint64_t reserve_bytes;
    // How long a round waits for workers before it goes on without them, in nanoseconds. Default: 100 ms.
    uint64_t patience_ns;
    // Worker slots. Default: 256.
    uint32_t max_workers;
    // Area slots. Default: 4096.
    uint32_t max_areas;
    // Observer slots. Default: 64.
    uint32_t max_observers;
    // The answer to a worker that stands still inside a round.
    ha_stall_policy stall_policy;
    // How long a stall may last, in nanoseconds; for policies other than `HA_STALL_WAIT`.
    uint64_t stall_after_ns;
    // Not 0: `ha_run` binds each worker to a core of its own.
    uint32_t pin_cores;
    // Not 0: check mode. Before every publication areas are compared with what was published before, and lines that
    // were written and not logged are reported (`ha_unlogged_writes`). With `HECTARE_CHECK=1` in the environment that is
    // so in every job, and the worker's next synchronization point returns `HA_UNLOGGED`.
    uint32_t check;
    // Not 0: 4 KiB pages only. Default: areas of 2 MiB and more on huge pages where possible.
    uint32_t no_huge_pages;
    // Generations of logs that an area keeps for `ha_area_changed_since`, at least 3. Default: 4.
    uint32_t generations;
    // After how many publications a generation is sealed. Default: 16.
    uint32_t seal_every;
    // Zero.
    uint32_t reserved;
} ha_job_options;

// The function that each worker of `ha_run` runs; 0 is success. It must not let a C++ exception out.
typedef int (*ha_worker_function)(struct ha_worker *worker,
                                  void *argument);

// The outcome of `ha_sync`. Set `size` to `sizeof(ha_synced)` before the call.
typedef struct ha_synced {
    // `sizeof(ha_synced)`.
    size_t size;
    // The round that was completed.
    uint64_t round;
    // How many rounds were given up before it because somebody did not come.
    uint32_t given_up;
    // How many of the areas asked for are published in a later round, because every reader copy is in use.
    uint32_t put_off;
} ha_synced;

// Options of an area. Zero in a field is the default; `ha_area_options_init` sets all to it.
typedef struct ha_area_options {
    // `sizeof(ha_area_options)`: tells which fields there are.
    size_t size;
    // Areas of the same group are published together, so that reading them gives one consistent state. Null: none.
    const char *group;
    // Elements per row, for `ha_log_row`. Rows of 128 bytes to 4 KiB, or of a multiple of 64, cost one test.
    // Default: 1.
    size_t row;
    // Publishes the area at this interval, in nanoseconds, if it changed. Default: on demand only.
    uint64_t interval_ns;
    // Reader copies: 1 is enough while every worker comes to every round; with 2 and more, late workers and observers
    // go on reading an old version. Default: 1.
    uint32_t copies;
    // Not 0: no reader copy at all. The area is handed over and lent, never published.
    uint32_t no_copies;
    // How the library learns what was written.
    ha_tracking tracking;
    // Zero.
    uint32_t reserved;
    // At least this long, in nanoseconds, between versions that go to another host; those before a clock or a barrier, and those
    // that are asked for, go at once. Default: as soon as the last one has come.
    uint64_t external_interval_ns;
} ha_area_options;

// A view of some elements of an area. While it is open, its worker cannot pass a synchronization point: calls that
// would fail with `HA_VIEW_OPEN`. So what it shows cannot change.
typedef struct ha_view {
    // The first element.
    const void *data;
    // Elements.
    size_t count;
    // The area.
    const struct ha_area *area;
    // Tells whether the view is open.
    uint64_t stamp;
} ha_view;

// The version of an area: compared by term, then by counter; it only grows.
typedef struct ha_version {
    // Rises when ownership is taken over without consent.
    uint64_t term;
    // Counts publications; 0 is the area as it was created.
    uint64_t counter;
} ha_version;

// The loss when an area is claimed from a dead owner. Set `size` to `sizeof(ha_loss)` before the call.
typedef struct ha_loss {
    // `sizeof(ha_loss)`.
    size_t size;
    // The version that the area was restored to; 0.0 for an area without reader copies.
    struct ha_version last_version;
    // How many workers' unpublished writes are lost.
    uint32_t lost_writers;
    // The first of them.
    uint32_t first_lost_writer;
} ha_loss;

// Elements `first` to `first + count - 1`.
typedef struct ha_range {
    // The first element.
    size_t first;
    // How many.
    size_t count;
} ha_range;

// A reduction of the program's own: fills `out`, which holds elements `first` to `first + count - 1` of the result
// (of the last run, before), from the same elements of all inputs, in their order. 0 is success. It may not use the
// worker (`HA_BUSY`), and must not let a C++ exception out.
typedef int (*ha_combine_function)(void *out,
                                   const void *const *inputs,
                                   size_t input_count,
                                   size_t first,
                                   size_t count,
                                   void *argument);

// Counters of a job since it was made. Set `size` to `sizeof(ha_stats)` before the call.
typedef struct ha_stats {
    // `sizeof(ha_stats)`.
    size_t size;
    // Rounds that began.
    uint64_t rounds;
    // Rounds given up because somebody did not come.
    uint64_t given_up;
    // How often a worker was left behind by a round that was given up.
    uint64_t late;
    // Versions published.
    uint64_t published;
    // Publications put off because every reader copy was in use, or because a group was not complete.
    uint64_t put_off;
    // Bytes copied into reader copies.
    uint64_t copied_bytes;
    // Chunks of a copy taken over from dead workers.
    uint64_t takeovers;
    // Workers seen dead.
    uint64_t deaths;
    // Areas claimed.
    uint64_t claims;
    // Processes killed by the stall policy.
    uint64_t kills;
    // Reader copies pinned by the stall policy (`pinned_copies` of `hectare stat`).
    uint64_t quarantines;
    // Lines of 64 bytes that check mode found written and not logged.
    uint64_t unlogged_lines;
} ha_stats;

// One line of the list of workers.
typedef struct ha_worker_info {
    // As many bytes of it as the caller asked for.
    size_t size;
    // Its rank.
    uint32_t rank;
    // Its process.
    uint32_t pid;
    // Its thread.
    uint32_t tid;
    // An `ha_worker_state`.
    uint32_t state;
    // The last round in which it took part.
    uint64_t last_round;
    // Its clock.
    uint64_t clock;
} ha_worker_info;

// One line of the list of areas. Text that is too long for its field is cut.
typedef struct ha_area_info {
    // As many bytes of it as the caller asked for.
    size_t size;
    // Its name.
    char name[256];
    // Its group; empty if it has none.
    char group[256];
    // The element type, for people.
    char element[48];
    // Elements.
    size_t len;
    // Bytes of one copy.
    uint64_t bytes;
    // Bytes of memory that it takes, with all copies and logs.
    uint64_t footprint;
    // Its interval in nanoseconds; 0 if it has none.
    uint64_t interval_ns;
    // The epoch of its ownership.
    uint64_t epoch;
    // The newest published version; 0.0 without reader copies.
    struct ha_version version;
    // Publications put off because every reader copy was in use.
    uint64_t put_off;
    // Reader copies.
    uint32_t copies;
    // The rank that owns it, or that it is on its way to; -1 if it can be claimed.
    int32_t owner;
} ha_area_info;

// A write that was not logged, found in check mode. It is published all the same.
typedef struct ha_unlogged {
    // As many bytes of it as the caller asked for.
    size_t size;
    // The area; a name that is too long is cut.
    char area[256];
    // The first byte, exact to lines of 64.
    size_t first_byte;
    // How many bytes.
    size_t bytes;
} ha_unlogged;

// The beginning of every `ha_area`, for the inline functions of the header. Not for programs: it is zero, but for the
// first word, wherever a function has to look closer. The log has one bit for each 64 bytes, and this library
// writes it only inside of calls.
typedef struct ha_area_head {
    // The kind of the handle.
    uint64_t magic;
    // The log, while the worker owns the area and the area has one.
    const uint64_t *log;
    // Elements whose lines the log has.
    size_t log_len;
    // Rows of which one bit tells whether they are logged.
    size_t probe_rows;
    // Bytes of such a row.
    size_t row_bytes;
    // The byte of a row whose bit that is.
    size_t probe;
    // Elements of a row.
    size_t row_len;
    // The size of an element is 1 << shift.
    size_t shift;
} ha_area_head;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A status in words, without details. Never null, also for numbers that are no status; static text.
//
// Thread: any.
const char *ha_status_message(int32_t status);

// The message of the last call that failed on this thread, in one line: which area or worker, what happened and
// what to do. Empty if none failed; at most 1023 bytes. The place is the same for all failures of a thread, and valid
// until the thread ends.
//
// Thread: any; each has its own text.
const char *ha_last_error(void);

// The version of the library, such as "0.1.0"; static text.
//
// Thread: any.
const char *ha_library_version(void);

// Whether a program that was compiled with this version of the header can use this library: call it as
// `ha_check_abi(HA_ABI_VERSION)`. The soname checks the same for programs that are linked; those that load the
// library by themselves, with `dlopen`, call this first.
//
// Thread: any.
// Fails: `HA_ABI_MISMATCH` if the major versions differ, or the header is newer than the library.
ha_status ha_check_abi(uint32_t header_version);

// Makes a job inside this program.
//
// Pointers: `options` null for the defaults, or settings with their `size` set; `job` a place for the handle.
// Thread: any.
// Fails: `HA_INVALID_CONFIG`, `HA_BAD_SIZE`, `HA_BAD_ARGUMENT`, `HA_SYSTEM`.
ha_status ha_job_embedded(const struct ha_job_options *options,
                          struct ha_job **job);

// Makes this process a member of the job of this name on this host, which is made if there is none. Needs the
// daemon, `hectared`, and takes its settings. The job goes when its last member has left.
//
// Pointers: `name` the job's name, or null for that in the environment (`HECTARE_JOB`, which `hectare run` sets);
// `job` a place for the handle.
// Thread: any.
// Fails: `HA_DAEMON`, `HA_NOT_A_JOB`, `HA_SYSTEM`, `HA_BAD_ARGUMENT` if `name` is null and the environment names no
// job.
ha_status ha_job_connect(const char *name,
                         struct ha_job **job);

// The job that the environment asks for: that of `HECTARE_JOB` if it is set (`ha_job_connect`), else one inside this
// program (`ha_job_embedded`). So the same binary runs alone and under `hectare run`.
//
// Pointers: `options` null for the defaults, or settings with their `size` set, for the second case; `job` a place
// for the handle.
// Thread: any.
// Fails: as the two.
ha_status ha_job_open(const struct ha_job_options *options,
                      struct ha_job **job);

// Which process of a program this is, as its launcher says: `hectare run`, Open MPI, PMI, torchrun or SLURM.
//
// Pointers: `rank` and `size` null, or places for this process's number and how many there are; 0 and 1 where no
// launcher set `HECTARE_JOB`.
// Thread: any.
// Fails: `HA_BAD_ARGUMENT` for variables that are missing or contradict each other.
ha_status ha_launch(uint32_t *rank,
                    uint32_t *size);

// Opens the job behind a descriptor that came from `ha_job_descriptor` of another process, by inheritance or over a
// Unix socket. The descriptor remains the caller's.
//
// Pointers: `job` a place for the handle.
// Thread: any.
// Fails: `HA_NOT_A_JOB`, `HA_SYSTEM`.
ha_status ha_job_from_descriptor(int descriptor,
                                 struct ha_job **job);

// The descriptor of the job's memory, close-on-exec: whoever has it can join the job. Valid as long as the handle is
// open; do not close it. It is for passing on: writes and mappings through it bypass the library, and
// changes memory that pointers for reading show.
//
// Pointers: `job` an open job; `descriptor` a place for the descriptor.
// Thread: any.
ha_status ha_job_descriptor(struct ha_job *job,
                            int *descriptor);

// Closes the handle. Workers and areas that were made with it go on.
//
// Pointers: `job` an open job that no other call uses, or null, which does nothing.
// Thread: any.
ha_status ha_job_close(struct ha_job *job);

// Deletes an area, whoever owns it. Its name is free at once, its memory later; handles that are attached get
// `HA_DELETED`.
//
// Pointers: `job` an open job; `name` the area's name.
// Thread: any.
// Fails: `HA_NO_SUCH_AREA`, `HA_FORKED`.
ha_status ha_job_delete_area(struct ha_job *job,
                             const char *name);

// Runs `function` on `count` new workers, each in a thread of its own, and waits for all. In a fresh job their ranks
// are 0 to `count` - 1. None begins before all have joined; a worker leaves when its function returns.
//
// Pointers: `job` an open job; `argument` whatever the function wants, for all threads at once.
// Thread: any.
// Fails: `HA_CALLBACK` if the function of a worker returned something else than 0; the text has the worker and the value.
// `HA_LIMIT`, `HA_SYSTEM` if threads cannot be started, `HA_FORKED`.
ha_status ha_run(struct ha_job *job,
                 size_t count,
                 ha_worker_function function,
                 void *argument);

// Makes the calling thread a worker, with the lowest free rank, or in a job of the daemon with the next that is
// handed to this process.
//
// Pointers: `job` an open job; `worker` a place for the handle.
// Thread: any; the handle belongs to the calling thread. A thread may be several workers, but then never waits for
// itself.
// Fails: `HA_LIMIT`, `HA_FORKED`, `HA_DAEMON`.
ha_status ha_worker_join(struct ha_job *job,
                         struct ha_worker **worker);

// Makes the calling thread the worker of this rank.
//
// Pointers: `job` an open job; `worker` a place for the handle.
// Thread: any; the handle belongs to the calling thread.
// Fails: `HA_RANK_TAKEN`, `HA_LIMIT`, `HA_FORKED`.
ha_status ha_worker_join_at(struct ha_job *job,
                            uint32_t rank,
                            struct ha_worker **worker);

// Leaves the job, and closes the handle and those of its areas, reducers and arrays. Areas that it owns become
// claimable. The worker of a body of `ha_run` leaves by returning: for it this fails with `HA_BUSY`.
//
// Pointers: `worker` an open worker, or null, which does nothing.
// Thread: that of the worker.
ha_status ha_worker_leave(struct ha_worker *worker);

// The worker's number in its job.
//
// Pointers: `worker` an open worker; `rank` a place for the number.
// Thread: that of the worker.
ha_status ha_worker_rank(struct ha_worker *worker,
                         uint32_t *rank);

// A synchronization point: takes part in a publication if one is under way, and begins one if an area is due.
// Cheap when there is nothing to do; call it once per batch, or per row. Pointers for reading
// (`ha_area_reader`) are no longer valid afterwards.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_service(struct ha_worker *worker);

// Publishes what this worker wrote, now: forces a round of the areas that it owns, and waits for it. A
// synchronization point. Workers that do not come within the job's patience are left out; `ha_barrier` waits for
// everybody.
//
// Pointers: `worker` an open worker; `synced` null, or a place for the outcome, its `size` set.
// Thread: that of the worker.
// Fails: `HA_VIEW_OPEN`, `HA_FORKED`, `HA_BAD_SIZE`.
ha_status ha_sync(struct ha_worker *worker,
                  struct ha_synced *synced);

// Ends a period of work: publishes what this worker wrote, and waits until every live worker has ended the same
// period; then each sees what all have written. The same as `ha_tick` and `ha_wait_clocks` with staleness 0. Every
// live worker of the job has to come, or to call `ha_leave_clocks` once.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none); the period has ended all the same,
// so wait on with `ha_wait_clocks`. `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_barrier_within(struct ha_worker *worker,
                            uint64_t timeout_ns);

// `ha_barrier_within` without a time-out.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_barrier(struct ha_worker *worker);

// Ends a period of work without waiting: raises the worker's clock, and marks what it wrote to be published in the
// next round.
//
// Pointers: `worker` an open worker; `clock` null, or a place for the new clock.
// Thread: that of the worker.
// Fails: `HA_FORKED`.
ha_status ha_tick(struct ha_worker *worker,
                  uint64_t *clock);

// The worker's clock: how often it ended a period (`ha_tick`, `ha_barrier`), counted from the lowest clock in the
// job when it joined.
//
// Pointers: `worker` an open worker; `clock` a place for the clock.
// Thread: that of the worker.
ha_status ha_clock(struct ha_worker *worker,
                   uint64_t *clock);

// Waits until no worker's published work is more than `staleness` clocks behind this worker's (stale synchronous
// parallel, Ho et al., 2013); takes part in publications meanwhile. A synchronization point.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none); the text names those who are behind.
// `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_wait_clocks(struct ha_worker *worker,
                         uint64_t staleness,
                         uint64_t timeout_ns);

// Takes this worker out of the clocks: nobody waits for it in barriers any more. For workers that do something else
// than train.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
ha_status ha_leave_clocks(struct ha_worker *worker);

// Puts this worker back into the clocks, at the lowest one. A synchronization point.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_VIEW_OPEN`; `HA_NO_SUCH_WORKER` in a job on several hosts, if no worker of this host was left in the clocks.
ha_status ha_rejoin_clocks(struct ha_worker *worker);

// Waits until `count` workers are in the job, this one included; takes part in publications meanwhile. A
// synchronization point.
//
// Pointers: `worker` an open worker.
// Thread: that of the worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_SUCH_WORKER` when the launcher
// says that one of the first `count` has failed before it came (`hectare run --keep-going`), `HA_VIEW_OPEN`,
// `HA_FORKED`.
ha_status ha_wait_for_workers(struct ha_worker *worker,
                              size_t count,
                              uint64_t timeout_ns);

// Creates an area of `len` elements, all zero, owned by the worker. A synchronization point: it may take part in
// publications while it waits for memory.
//
// Names are `/`-separated paths of non-empty parts, such as "model/users".
//
// Pointers: `worker` an open worker; `name` the area's name; `options` null for the defaults, or with their `size`
// set; `area` a place for the handle.
// Thread: that of the worker.
// Fails: `HA_NAME_TAKEN`, `HA_INVALID_NAME`, `HA_INVALID_AREA`, `HA_OUT_OF_MEMORY`, `HA_LIMIT`, `HA_BAD_ARGUMENT`,
// `HA_BAD_SIZE`, `HA_VIEW_OPEN`, `HA_SYSTEM`, `HA_FORKED`.
ha_status ha_area_create(struct ha_worker *worker,
                         const char *name,
                         ha_type element_type,
                         size_t len,
                         const struct ha_area_options *options,
                         struct ha_area **area);

// Attaches to an area for reading. If `timeout_ns` is not 0, waits so many nanoseconds for it to be created. With a time-out,
// and in a job on several hosts, it is a synchronization point: there, an area of another host is waited for until it has come,
// or the hosts have said that there is none.
//
// Pointers: `worker` an open worker; `name` the area's name; `area` a place for the handle.
// Thread: that of the worker.
// Fails: `HA_NO_SUCH_AREA` without a time-out, `HA_TIMED_OUT` with one; `HA_WRONG_TYPE`, `HA_INVALID_NAME`,
// `HA_BAD_ARGUMENT`, `HA_FORKED`; in a job on several hosts also `HA_NOT_SHARED` and `HA_OUT_OF_MEMORY`, at once.
ha_status ha_area_attach(struct ha_worker *worker,
                         const char *name,
                         ha_type element_type,
                         uint64_t timeout_ns,
                         struct ha_area **area);

// Closes the handle. If the worker owns the area, the area becomes claimable (`ha_area_claim`); to end it, delete it.
//
// Pointers: `area` an open area, or null, which does nothing.
// Thread: that of its worker.
// Fails: `HA_VIEW_OPEN` while views of any area of this worker are open.
ha_status ha_area_detach(struct ha_area *area);

// Deletes an area that the worker owns or has lent, and closes the handle. Its name is free at once, its memory
// later; other handles of it get `HA_DELETED`. A synchronization point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`; the handle stays open then.
ha_status ha_area_delete(struct ha_area *area);

// Elements in the area; 0 if `area` is no handle of this thread's.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
size_t ha_area_len(const struct ha_area *area);

// Elements per row; 0 if `area` is no handle of this thread's.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
size_t ha_area_row_len(const struct ha_area *area);

// Whether the worker owns the area: 1 or 0; 0 too if `area` is no handle of this thread's.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
int32_t ha_area_is_owned(const struct ha_area *area);

// The elements of the area, for writing: what the owner last wrote, published or not. Valid as long as the worker
// owns the area and nobody deletes it, also across synchronization points; write through it only between them, and
// log what you write (`ha_log`), unless the area is tracked automatically.
//
// Pointers: `area` an open area; `data` a place for the pointer, which is aligned to 64 bytes.
// Thread: that of its worker.
// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_writer(struct ha_area *area,
                         void **data);

// The slow path of `ha_log`, for a range that is not logged already.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
ha_status ha_log_slow(struct ha_area *area,
                      size_t first,
                      size_t count);

// The slow path of `ha_log_rows`, for rows that are not logged already.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
ha_status ha_log_rows_slow(struct ha_area *area,
                           size_t first_row,
                           size_t rows);

// Logs the whole area: all of it is copied at the next publication.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_log_all(struct ha_area *area);

// Copies `count` elements from `from` into the area, from element `first` on, and logs them.
//
// Pointers: `area` an open area; `from` readable for `bytes` bytes, which are `count` elements.
// Thread: that of its worker.
// Fails: `HA_OUT_OF_RANGE`, `HA_BAD_SIZE` if `bytes` is not the size of `count` elements, `HA_NOT_OWNER`,
// `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_store(struct ha_area *area,
                        size_t first,
                        size_t count,
                        const void *from,
                        size_t bytes);

// The newest version that was published when the worker last stood at a synchronization point: one whole version,
// never a mix. Valid, and unchanged, until the worker's next synchronization point.
//
// Pointers: `area` an open area; `data` a place for the pointer, which is aligned to 64 bytes.
// Thread: that of its worker; others may read through the pointer as long as it is valid.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_reader(const struct ha_area *area,
                         const void **data);

// The area as its owner wrote it before lending it (`ha_area_lend`), in place. Valid until the worker's next
// synchronization point.
//
// Pointers: `area` an open area; `data` a place for the pointer.
// Thread: that of its worker; others may read through the pointer as long as it is valid.
// Fails: `HA_NOT_LENT`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_lent_reader(const struct ha_area *area,
                              const void **data);

// Opens a view of `count` elements of the visible version, from element `first` on.
//
// Pointers: `area` an open area; `view` a place for the view.
// Thread: that of its worker.
// Fails: `HA_OUT_OF_RANGE`, `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_view_open(const struct ha_area *area,
                       size_t first,
                       size_t count,
                       struct ha_view *view);

// Closes a view.
//
// Pointers: `view` a view that `ha_view_open` made.
// Thread: that of its worker.
// Fails: `HA_BAD_HANDLE` if it is not open (closed before, or its worker has left).
ha_status ha_view_close(struct ha_view *view);

// Copies `count` elements of the visible version, from element `first` on, to `to`.
//
// Pointers: `area` an open area; `to` writable for `bytes` bytes, which are `count` elements.
// Thread: that of its worker.
// Fails: `HA_OUT_OF_RANGE`, `HA_BAD_SIZE` if `bytes` is not the size of `count` elements, `HA_NO_READER_COPY`,
// `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_load(const struct ha_area *area,
                       size_t first,
                       size_t count,
                       void *to,
                       size_t bytes);

// Gives the area to worker `to`: one atomic exchange, no barrier, no copy. What was written and not yet published goes along. The
// handle remains, for reading and for `ha_area_take`; the writer pointer is no longer valid. To a worker of another host it goes in
// the background.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_NOT_OWNER` (also when it was given before), `HA_NO_SUCH_WORKER`, `HA_INVALID_AREA` (it cannot go to another host),
// `HA_DELETED`, `HA_FORKED`; the area stays with its owner then.
ha_status ha_area_give(struct ha_area *area,
                       uint32_t to);

// Publishes the area, then gives it to worker `to`: nothing can be lost by the death of later owners. A
// synchronization point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: as `ha_area_give`, and `HA_TIMED_OUT` if every reader copy is in use for ten seconds, `HA_VIEW_OPEN`.
ha_status ha_area_give_published(struct ha_area *area,
                                 uint32_t to);

// Takes an area that another worker gives to this one, waiting until it does; takes part in publications meanwhile.
// A synchronization point. With a time-out of 0, only looks whether it is on its way, and is no synchronization
// point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_OWNER_GONE`,
// `HA_ALREADY_OWNER`, `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_area_take(struct ha_area *area,
                       uint64_t timeout_ns);

// Takes over an area whose owner is dead or has let go of it. It is restored from the last published version; what
// was written after that is lost. A synchronization point.
//
// Pointers: `worker` an open worker; `name` the area's name; `area` a place for the handle; `loss` null, or a place
// for the loss, its `size` set.
// Thread: that of the worker.
// Fails: `HA_OWNER_ALIVE`, `HA_NO_SUCH_AREA`, `HA_WRONG_TYPE`, `HA_VIEW_OPEN`, `HA_BAD_SIZE`, `HA_FORKED`.
ha_status ha_area_claim(struct ha_worker *worker,
                        const char *name,
                        ha_type element_type,
                        struct ha_area **area,
                        struct ha_loss *loss);

// Lends the area to all workers for reading: `ha_area_lent_reader` shows them what this worker wrote, in place, with
// or without reader copies. Nobody writes it until `ha_area_recall`.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_lend(struct ha_area *area);

// Takes a lent area back for writing: refuses readers from now on, and waits until those who read it have passed a
// synchronization point. A synchronization point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_NOT_LENT` if this worker has not lent it, `HA_TIMED_OUT` after ten seconds, `HA_VIEW_OPEN`; after other
// failures than these, and after `HA_TIMED_OUT`, the area is claimable.
ha_status ha_area_recall(struct ha_area *area);

// The version that the worker sees.
//
// Pointers: `area` an open area; `version` a place for the version.
// Thread: that of its worker.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_version(const struct ha_area *area,
                          struct ha_version *version);

// The newest published version, whether or not the worker can see it yet; 0.0 for an area without reader copies, or
// that was deleted.
//
// Pointers: `area` an open area; `version` a place for the version.
// Thread: that of its worker.
ha_status ha_area_newest_version(const struct ha_area *area,
                                 struct ha_version *version);

// When the version that the worker sees was published, in nanoseconds of `CLOCK_MONOTONIC`; 0 if never.
//
// Pointers: `area` an open area; `timestamp_ns` a place for the time.
// Thread: that of its worker.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_timestamp(const struct ha_area *area,
                            uint64_t *timestamp_ns);

// How stale the visible version may be: the time since it was last known to equal what the owner had written.
//
// Pointers: `area` an open area; `age_ns` a place for the age.
// Thread: that of its worker.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_age(const struct ha_area *area,
                      uint64_t *age_ns);

// The owner's clock (`ha_tick`) when the visible version was published.
//
// Pointers: `area` an open area; `clock` a place for the clock.
// Thread: that of its worker.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_clock(const struct ha_area *area,
                        uint64_t *clock);

// The elements that may have changed after version `since` up to the version that the worker sees, in ascending
// ranges: possibly more than changed, never less. `count` becomes the number of ranges, also where there is no room
// for all; ask again then with more room.
//
// Pointers: `area` an open area; `ranges` writable for `room` ranges, or null if that is 0; `count` a place for the
// number.
// Thread: that of its worker.
// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_area_changed_since(const struct ha_area *area,
                                struct ha_version since,
                                struct ha_range *ranges,
                                size_t room,
                                size_t *count);

// Makes a later `ha_area_changed_since` of the next version not see what came before it.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
ha_status ha_area_seal(const struct ha_area *area);

// Marks the area to be published in the next round, and asks for one. Does not wait.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
ha_status ha_area_request_sync(const struct ha_area *area);

// Publishes the area, whoever owns it, now: forces a round, and waits for it. A synchronization point.
//
// Pointers: `area` an open area; `synced` null, or a place for the outcome, its `size` set.
// Thread: that of its worker.
// Fails: `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`, `HA_BAD_SIZE`.
ha_status ha_area_sync(const struct ha_area *area,
                       struct ha_synced *synced);

// Waits until the worker sees version `version` of the area, or a later one; takes part in publications meanwhile, but
// forces none. A synchronization point.
//
// Pointers: `area` an open area; `seen` null, or a place for the version that it sees then.
// Thread: that of its worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
// `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_area_wait_version(const struct ha_area *area,
                               struct ha_version version,
                               uint64_t timeout_ns,
                               struct ha_version *seen);

// Waits until what the worker sees is at most `age_ns` nanoseconds old (`ha_area_age`), forcing a publication if it is
// not. A synchronization point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
// `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_area_wait_fresh(const struct ha_area *area,
                             uint64_t age_ns,
                             uint64_t timeout_ns);

// Waits until the version that the worker sees was published by its owner no more than `staleness` clocks before this
// worker's clock: bounded staleness for one area. A synchronization point.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
// `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_area_wait_clock(const struct ha_area *area,
                             uint64_t staleness,
                             uint64_t timeout_ns);

// Makes a reducer of `member_count` workers, each of which calls this with the same arguments and is in the list. It
// creates the area `name`/rank for the worker's share. A synchronization point.
//
// Pointers: `worker` an open worker; `name` the reducer's name; `members` readable for `member_count` ranks; `inputs`
// readable for `input_count` open areas of this worker, all of `element_type` and of the same length; `reducer` a
// place for the handle.
// Thread: that of the worker.
// Fails: `HA_INVALID_AREA` for wrong members or lengths, `HA_WRONG_TYPE`, `HA_TIMED_OUT` if a member does not come
// within thirty seconds, `HA_VIEW_OPEN`; as `ha_area_create`.
ha_status ha_reducer_create(struct ha_worker *worker,
                            const char *name,
                            ha_type element_type,
                            const uint32_t *members,
                            size_t member_count,
                            const struct ha_area *const *inputs,
                            size_t input_count,
                            struct ha_reducer **reducer);

// Runs the reduction: two barriers (`ha_barrier`), one that publishes the inputs, one that publishes the result. Every
// member calls it with the same operation. A synchronization point.
//
// Pointers: `reducer` an open reducer.
// Thread: that of its worker.
// Fails: `HA_BAD_ARGUMENT`, `HA_NO_SUCH_WORKER` if a member died before it published its share, `HA_VIEW_OPEN`,
// `HA_DELETED`, `HA_FORKED`.
ha_status ha_reducer_run(struct ha_reducer *reducer,
                         ha_operation operation);

// `ha_reducer_run` with a function of the program's own.
//
// Pointers: `reducer` an open reducer; `argument` whatever the function wants.
// Thread: that of its worker.
// Fails: as `ha_reducer_run`; `HA_CALLBACK` if the function returned something else than 0, after the reduction was
// completed.
ha_status ha_reducer_run_with(struct ha_reducer *reducer,
                              ha_combine_function function,
                              void *argument);

// Copies the whole result to `to`.
//
// Pointers: `reducer` an open reducer; `to` writable for `bytes` bytes, which is the size of the result.
// Thread: that of its worker.
// Fails: `HA_BAD_SIZE`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_reducer_load(struct ha_reducer *reducer,
                          void *to,
                          size_t bytes);

// The elements of this member's share of the result.
//
// Pointers: `reducer` an open reducer; `share` a place for the range.
// Thread: that of its worker.
ha_status ha_reducer_share(struct ha_reducer *reducer,
                           struct ha_range *share);

// Closes the handle.
//
// Pointers: `reducer` an open reducer, or null, which does nothing.
// Thread: that of its worker.
ha_status ha_reducer_close(struct ha_reducer *reducer);

// Makes an array of `len` elements, all zero, of `member_count` workers, each of which calls this with the same
// arguments and is in the list. It creates the areas `name`/rank and `name`/ranges/rank, and for the first member
// `name`/master and `name`/state. A synchronization point.
//
// Pointers: `worker` an open worker; `name` the array's name; `options` null, or the options of the members' areas,
// with its `size` set; `members` readable for `member_count` ranks; `max_ranges` is how many ranges a member may name
// in one reduction, 0 for 4096; `array` a place for the handle.
// Thread: that of the worker.
// Fails: `HA_INVALID_AREA` for wrong members or lengths, `HA_TIMED_OUT` if a member does not come within thirty
// seconds, `HA_VIEW_OPEN`; as `ha_area_create`.
ha_status ha_array_create(struct ha_worker *worker,
                          const char *name,
                          ha_type element_type,
                          size_t len,
                          const struct ha_area_options *options,
                          const uint32_t *members,
                          size_t member_count,
                          size_t max_ranges,
                          struct ha_array **array);

// The worker's own area of the array, to write (`ha_area_writer`) and to log. The handle is the array's: do not
// detach it.
//
// Pointers: `array` an open array; `local` a place for the handle.
// Thread: that of its worker.
ha_status ha_array_local(struct ha_array *array,
                         struct ha_area **local);

// The master, as the worker sees it. Valid until its next synchronization point.
//
// Pointers: `array` an open array; `data` a place for the pointer.
// Thread: that of its worker; others may read through the pointer as long as it is valid.
// Fails: `HA_DELETED`, `HA_FORKED`.
ha_status ha_array_master(struct ha_array *array,
                          const void **data);

// Ends a batch: the same as `ha_barrier` of the array's worker.
//
// Pointers: `array` an open array.
// Thread: that of its worker.
// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
ha_status ha_array_barrier(struct ha_array *array);

// Brings the master up to date with what the members wrote: each names the ranges of its own area that count, and the
// operation says what becomes of elements that several name. What nobody names stays as it is; what a member names
// twice counts twice. Two barriers; every
// member calls it with the same operation, also with no ranges. A synchronization point.
//
// Pointers: `array` an open array; `ranges` readable for `count` ranges, or null if that is 0.
// Thread: that of its worker.
// Fails: `HA_OUT_OF_RANGE` or `HA_LIMIT` for wrong ranges, after which the others fail with `HA_CALLBACK`;
// `HA_NO_SUCH_WORKER` if a member is dead; `HA_BAD_ARGUMENT`, `HA_VIEW_OPEN`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_array_reduce(struct ha_array *array,
                          ha_operation operation,
                          const struct ha_range *ranges,
                          size_t count);

// Copies ranges of the master, as the worker sees it, into the worker's own area, and logs them there.
//
// Pointers: `array` an open array; `ranges` readable for `count` ranges, or null if that is 0.
// Thread: that of its worker.
// Fails: `HA_OUT_OF_RANGE` (nothing is copied then), `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
ha_status ha_array_map(struct ha_array *array,
                       const struct ha_range *ranges,
                       size_t count);

// Closes the handle, and that of the worker's own area, which becomes claimable, as the master does if this is the
// first member.
//
// Pointers: `array` an open array, or null, which does nothing.
// Thread: that of its worker.
ha_status ha_array_close(struct ha_array *array);

// Registers the calling thread as an observer.
//
// Pointers: `job` an open job; `observer` a place for the handle.
// Thread: any; the handle belongs to the calling thread.
// Fails: `HA_LIMIT`, `HA_FORKED`.
ha_status ha_observer_open(struct ha_job *job,
                           struct ha_observer **observer);

// Copies `count` elements of the newest version of an area, from element `first` on, to `to`: one whole version,
// never a mix.
//
// Pointers: `observer` an open observer; `name` the area's name; `to` writable for `bytes` bytes, which are `count`
// elements; `version` null, or a place for the version.
// Thread: that of the observer.
// Fails: `HA_NO_SUCH_AREA`, `HA_WRONG_TYPE`, `HA_OUT_OF_RANGE`, `HA_BAD_SIZE`, `HA_NO_READER_COPY`, `HA_LIMIT`,
// `HA_TIMED_OUT` if a publication of the only copy stands still for ten seconds, `HA_BAD_ARGUMENT`, `HA_FORKED`.
ha_status ha_observer_load(struct ha_observer *observer,
                           const char *name,
                           ha_type element_type,
                           size_t first,
                           size_t count,
                           void *to,
                           size_t bytes,
                           struct ha_version *version);

// Closes the handle.
//
// Pointers: `observer` an open observer, or null, which does nothing.
// Thread: that of the observer.
ha_status ha_observer_close(struct ha_observer *observer);

// The job's counters.
//
// Pointers: `job` an open job; `stats` a place for them, its `size` set.
// Thread: any.
// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
ha_status ha_job_stats(struct ha_job *job,
                       struct ha_stats *stats);

// Bytes that are free in the job's reserved range, and bytes of memory that the job takes now.
//
// Pointers: `job` an open job; `free_bytes`, `resident_bytes` null, or places for the numbers.
// Thread: any.
// Fails: `HA_SYSTEM`, `HA_FORKED`.
ha_status ha_job_memory(struct ha_job *job,
                        uint64_t *free_bytes,
                        uint64_t *resident_bytes);

// The workers of the job. `count` becomes their number, also where there is no room for all.
//
// Pointers: `job` an open job; `workers` writable for `room` entries of `item_size` bytes, which is
// `sizeof(ha_worker_info)`, or null if `room` is 0; `count` a place for the number.
// Thread: any.
// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
ha_status ha_job_workers(struct ha_job *job,
                         struct ha_worker_info *workers,
                         size_t item_size,
                         size_t room,
                         size_t *count);

// The areas of the job. `count` becomes their number, also where there is no room for all.
//
// Pointers: `job` an open job; `areas` writable for `room` entries of `item_size` bytes, which is
// `sizeof(ha_area_info)`, or null if `room` is 0; `count` a place for the number.
// Thread: any.
// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
ha_status ha_job_areas(struct ha_job *job,
                       struct ha_area_info *areas,
                       size_t item_size,
                       size_t room,
                       size_t *count);

// The unlogged writes that check mode (`ha_job_options.check`) has found in this worker's areas since the last call.
// Writes that do not fit into `room` are lost; `count` becomes the number of all.
//
// Pointers: `worker` an open worker; `writes` writable for `room` entries of `item_size` bytes, which is
// `sizeof(ha_unlogged)`, or null if `room` is 0; `count` a place for the number.
// Thread: that of the worker.
// Fails: `HA_BAD_SIZE`.
ha_status ha_unlogged_writes(struct ha_worker *worker,
                             struct ha_unlogged *writes,
                             size_t item_size,
                             size_t room,
                             size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
// The hot path, in line: no call where everything is logged already.

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define HA_LIKELY(condition) __builtin_expect(!!(condition), 1)
#else
#define HA_LIKELY(condition) (condition)
#endif

// Tells the log that elements first to first + count - 1 were written, or are about to be: in any order, but in the
// same period between two synchronization points. Twice does no harm. Exact to lines of 64 bytes, and to rows if the
// area has some.
//
// What the log knows already, this finds out without a call, and without a look at the thread; the other checks are
// made when something is new.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: HA_OUT_OF_RANGE (nothing is logged then), HA_NOT_OWNER, HA_DELETED, HA_FORKED.
static inline ha_status ha_log(ha_area *area, size_t first, size_t count)
{
    const ha_area_head *head = (const ha_area_head *)(const void *)area;
    if (HA_LIKELY(head != NULL && first < head->log_len && count - 1 < head->log_len - first)) {
        size_t low = (first << head->shift) >> 6;
        size_t high = (((first + count) << head->shift) - 1) >> 6;
        if (HA_LIKELY((low >> 6) == (high >> 6))) {
            uint64_t bits = (UINT64_MAX >> (63 - (high - low))) << (low & 63);
            if (HA_LIKELY((head->log[low >> 6] & bits) == bits))
                return HA_OK;
        }
    }
    return ha_log_slow(area, first, count);
}

// Tells the log that row `row` of the area (ha_area_options.row) was written, or is about to be. One test of one bit
// where the row is logged already.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: as ha_log.
static inline ha_status ha_log_row(ha_area *area, size_t row)
{
    const ha_area_head *head = (const ha_area_head *)(const void *)area;
    if (HA_LIKELY(head != NULL && row < head->probe_rows)) {
        size_t line = (row * head->row_bytes + head->probe) >> 6;
        if (HA_LIKELY((head->log[line >> 6] >> (line & 63)) & 1))
            return HA_OK;
        return ha_log_rows_slow(area, row, 1);
    }
    if (head != NULL && head->row_len != 0 && row < head->log_len / head->row_len)
        return ha_log(area, row * head->row_len, head->row_len);
    return ha_log_rows_slow(area, row, 1);
}

// ha_log_row for rows first_row to first_row + rows - 1.
//
// Pointers: `area` an open area.
// Thread: that of its worker.
// Fails: as ha_log.
static inline ha_status ha_log_rows(ha_area *area, size_t first_row, size_t rows)
{
    const ha_area_head *head = (const ha_area_head *)(const void *)area;
    if (head != NULL && first_row < head->probe_rows && rows <= head->probe_rows - first_row) {
        size_t row = first_row;
        while (row < first_row + rows) {
            size_t line = (row * head->row_bytes + head->probe) >> 6;
            if (!((head->log[line >> 6] >> (line & 63)) & 1))
                return ha_log_rows_slow(area, row, first_row + rows - row);
            row++;
        }
        return HA_OK;
    }
    return ha_log_rows_slow(area, first_row, rows);
}

// Sets all settings of a job to their defaults.
static inline void ha_job_options_init(ha_job_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

// Sets all settings of an area to their defaults.
static inline void ha_area_options_init(ha_area_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

#ifdef __cplusplus
}
#endif
#endif  /* HECTARE_H */
