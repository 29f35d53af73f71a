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
