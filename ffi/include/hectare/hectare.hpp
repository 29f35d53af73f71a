// libhectare for C++17: handles that close themselves, views like std::span, exceptions or statuses, and an allocator
// with which a std::vector is an area. Header-only, on top of hectare.h; everything there can be used beside it.
//
//     auto job = hectare::job::embedded();
//     job.run(4, [&](hectare::worker &worker) {
//         auto mine = worker.create<double>("part/" + std::to_string(worker.rank()), 1000);
//         auto w = mine.writer();                    // a span; valid while the worker owns the area
//         w[7] = 1.0;
//         mine.log(7);
//         worker.barrier();
//         auto theirs = worker.attach<double>("part/0", std::chrono::seconds(10));
//         double x = theirs.reader()[7];             // valid until the next synchronization point
//     });
//
// Failures are exceptions of type hectare::error, with the status and the text. To get a status instead, use the
// overload of each function with a first argument of type hectare::status &, which is set, and which never throws; if it
// returns a handle, that is empty after a failure. With -fno-exceptions, or
// HECTARE_NO_EXCEPTIONS defined, only these overloads exist.
//
// The threading rules of hectare.h apply: a worker and its areas are for one thread.
#ifndef HECTARE_HPP
#define HECTARE_HPP

#include <hectare/hectare.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(HECTARE_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define HECTARE_NO_EXCEPTIONS
#endif

#ifndef HECTARE_NO_EXCEPTIONS
#include <exception>
#include <mutex>
#include <stdexcept>
#endif

namespace hectare {

// The outcome of a call, with its text.
class status {
public:
    status() noexcept = default;
    status(ha_status code) : code_(code), text_(code == HA_OK ? "" : ha_last_error()) {}
    // With a text of one's own.
    status(ha_status code, std::string text) : code_(code), text_(std::move(text)) {}

    bool ok() const noexcept { return code_ == HA_OK; }
    explicit operator bool() const noexcept { return ok(); }
    ha_status code() const noexcept { return code_; }
    const std::string &text() const noexcept { return text_; }

private:
    ha_status code_ = HA_OK;
    std::string text_;
};

#ifndef HECTARE_NO_EXCEPTIONS

// A failed call.
class error : public std::runtime_error {
public:
    explicit error(const status &failed)
        : std::runtime_error(std::string(ha_status_message(failed.code())) + ": " + failed.text()), code_(failed.code())
    {
    }

    ha_status code() const noexcept { return code_; }

private:
    ha_status code_;
};

namespace detail {
inline void check(ha_status code)
{
    if (code != HA_OK)
        throw error(status(code));
}
} // namespace detail

#endif

// The ha_type of an element type.
template <class T> struct element;
template <> struct element<std::uint8_t> { static constexpr ha_type type = HA_U8; };
template <> struct element<std::int8_t> { static constexpr ha_type type = HA_I8; };
template <> struct element<std::uint16_t> { static constexpr ha_type type = HA_U16; };
template <> struct element<std::int16_t> { static constexpr ha_type type = HA_I16; };
template <> struct element<std::uint32_t> { static constexpr ha_type type = HA_U32; };
template <> struct element<std::int32_t> { static constexpr ha_type type = HA_I32; };
template <> struct element<std::uint64_t> { static constexpr ha_type type = HA_U64; };
template <> struct element<std::int64_t> { static constexpr ha_type type = HA_I64; };
template <> struct element<float> { static constexpr ha_type type = HA_F32; };
template <> struct element<double> { static constexpr ha_type type = HA_F64; };

// Elements in a row, as std::span of C++20 has them.
template <class T> class span {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class U, class = std::enable_if_t<std::is_convertible<U (*)[], T (*)[]>::value>>
    constexpr span(const span<U> &other) noexcept : data_(other.data()), size_(other.size())
    {
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
    constexpr span subspan(std::size_t first, std::size_t count) const noexcept { return {data_ + first, count}; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// Nanoseconds of a duration; too long a one becomes `HA_FOREVER`.
template <class Rep, class Period> std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> duration)
{
    using wide = std::chrono::duration<long double, std::nano>;
    const long double count = std::chrono::duration_cast<wide>(duration).count();
    if (count <= 0)
        return 0;
    return count >= 18446744073709551615.0L ? HA_FOREVER : static_cast<std::uint64_t>(count);
}

namespace detail {

// A handle that is closed by its destructor.
template <class H, ha_status (*Close)(H *)> class handle {
public:
    handle() noexcept = default;
    explicit handle(H *raw) noexcept : raw_(raw) {}
    handle(handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    handle &operator=(handle &&other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    // A handle that was closed with its worker is recognized.
    ~handle() { reset(); }

    // For the functions of hectare.h; null if empty.
    H *get() const noexcept { return raw_; }
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    // Releases the handle without closing it.
    H *release() noexcept { return std::exchange(raw_, nullptr); }
    // Closes the handle now.
    ha_status reset() noexcept { return raw_ == nullptr ? HA_OK : Close(std::exchange(raw_, nullptr)); }

protected:
    H *raw_ = nullptr;
};

} // namespace detail

// A view of an area that keeps its worker from passing a synchronization point while it exists (HA_VIEW_OPEN).
template <class T> class view : public span<const T> {
public:
    view() noexcept = default;
    explicit view(const ha_view &raw) noexcept
        : span<const T>(static_cast<const T *>(raw.data), raw.count), raw_(raw)
    {
    }
    view(view &&other) noexcept : span<const T>(other), raw_(std::exchange(other.raw_, ha_view())) {}
    view(const view &) = delete;
    view &operator=(const view &) = delete;
    view &operator=(view &&) = delete;
    ~view()
    {
        if (raw_.stamp != 0)
            ha_view_close(&raw_);
    }

private:
    ha_view raw_ = {};
};

// Options of an area: ha_area_options with named setters.
struct area_options : ha_area_options {
    area_options() noexcept { ha_area_options_init(this); }
    area_options &with_row(std::size_t elements) noexcept { return row = elements, *this; }
    area_options &with_copies(std::uint32_t count) noexcept { return copies = count, *this; }
    area_options &without_copies() noexcept { return no_copies = 1, *this; }
    area_options &with_tracking(ha_tracking how) noexcept { return tracking = how, *this; }
    // The text must live until the area is created.
    area_options &with_group(const char *name) noexcept { return group = name, *this; }
    template <class Rep, class Period> area_options &with_interval(std::chrono::duration<Rep, Period> interval)
    {
        return interval_ns = nanoseconds(interval), *this;
    }
    template <class Rep, class Period>
    area_options &with_external_interval(std::chrono::duration<Rep, Period> interval)
    {
        return external_interval_ns = nanoseconds(interval), *this;
    }
    area_options &with_on_demand() noexcept { return on_demand = 1, *this; }
};

// An area, attached or owned.
template <class T> class area : public detail::handle<ha_area, ha_area_detach> {
    using base = detail::handle<ha_area, ha_area_detach>;

public:
    using base::base;

    std::size_t size() const noexcept { return ha_area_len(this->get()); }
    std::size_t row_size() const noexcept { return ha_area_row_len(this->get()); }
    bool is_owned() const noexcept { return ha_area_is_owned(this->get()) != 0; }

    span<T> writer(status &out) noexcept
    {
        void *data = nullptr;
        return (out = ha_area_writer(this->get(), &data)).ok() ? span<T>(static_cast<T *>(data), size()) : span<T>();
    }
    span<const T> reader(status &out) const noexcept
    {
        const void *data = nullptr;
        out = ha_area_reader(this->get(), &data);
        return out.ok() ? span<const T>(static_cast<const T *>(data), size()) : span<const T>();
    }
    hectare::view<T> view(status &out, std::size_t first, std::size_t count) const noexcept
    {
        ha_view raw = {};
        out = ha_view_open(this->get(), first, count, &raw);
        return out.ok() ? hectare::view<T>(raw) : hectare::view<T>();
    }
    void load(status &out, std::size_t first, span<T> to) const noexcept
    {
        out = ha_area_load(this->get(), first, to.size(), to.data(), to.size() * sizeof(T));
    }
    void store(status &out, std::size_t first, span<const T> from) noexcept
    {
        out = ha_area_store(this->get(), first, from.size(), from.data(), from.size() * sizeof(T));
    }
    ha_version version(status &out) const noexcept
    {
        ha_version seen = {};
        out = ha_area_version(this->get(), &seen);
        return seen;
    }

    // The hot path, inline. Returns the status: ignore it if the indices are known to be valid.
    ha_status try_log(std::size_t first, std::size_t count = 1) noexcept { return ha_log(this->get(), first, count); }
    ha_status try_log_row(std::size_t row) noexcept { return ha_log_row(this->get(), row); }
    ha_status try_log_all() noexcept { return ha_log_all(this->get()); }
    ha_status try_give(std::uint32_t to) noexcept { return ha_area_give(this->get(), to); }
    ha_status try_take(std::uint64_t timeout_ns = HA_FOREVER) noexcept { return ha_area_take(this->get(), timeout_ns); }
    ha_status try_lend() noexcept { return ha_area_lend(this->get()); }
    ha_status try_recall() noexcept { return ha_area_recall(this->get()); }
    // Publishes the area now, whoever owns it, on any host. A synchronization point.
    ha_status try_sync() noexcept { return ha_area_sync(this->get(), nullptr); }
    ha_status try_wait_fresh(std::uint64_t age_ns, std::uint64_t timeout_ns = HA_FOREVER) noexcept
    {
        return ha_area_wait_fresh(this->get(), age_ns, timeout_ns);
    }
    // Deletes the area, and empties this.
    ha_status try_destroy() noexcept
    {
        const ha_status code = ha_area_delete(this->get());
        if (code == HA_OK)
            this->release();
        return code;
    }

#ifndef HECTARE_NO_EXCEPTIONS
    span<T> writer()
    {
        void *data = nullptr;
        detail::check(ha_area_writer(this->get(), &data));
        return {static_cast<T *>(data), size()};
    }
    span<const T> reader() const
    {
        const void *data = nullptr;
        detail::check(ha_area_reader(this->get(), &data));
        return {static_cast<const T *>(data), size()};
    }
    span<const T> lent_reader() const
    {
        const void *data = nullptr;
        detail::check(ha_area_lent_reader(this->get(), &data));
        return {static_cast<const T *>(data), size()};
    }
    hectare::view<T> view(std::size_t first, std::size_t count) const
    {
        ha_view raw = {};
        detail::check(ha_view_open(this->get(), first, count, &raw));
        return hectare::view<T>(raw);
    }
    hectare::view<T> view() const { return view(0, size()); }
    void load(std::size_t first, span<T> to) const
    {
        detail::check(ha_area_load(this->get(), first, to.size(), to.data(), to.size() * sizeof(T)));
    }
    void store(std::size_t first, span<const T> from)
    {
        detail::check(ha_area_store(this->get(), first, from.size(), from.data(), from.size() * sizeof(T)));
    }
    ha_version version() const
    {
        ha_version seen = {};
        detail::check(ha_area_version(this->get(), &seen));
        return seen;
    }
    void log(std::size_t first, std::size_t count = 1) { detail::check(ha_log(this->get(), first, count)); }
    void log_row(std::size_t row) { detail::check(ha_log_row(this->get(), row)); }
    void log_rows(std::size_t first, std::size_t count) { detail::check(ha_log_rows(this->get(), first, count)); }
    void log_all() { detail::check(ha_log_all(this->get())); }
    void give(std::uint32_t to) { detail::check(ha_area_give(this->get(), to)); }
    void give_published(std::uint32_t to) { detail::check(ha_area_give_published(this->get(), to)); }
    void take() { detail::check(ha_area_take(this->get(), HA_FOREVER)); }
    template <class Rep, class Period> void take(std::chrono::duration<Rep, Period> limit)
    {
        detail::check(ha_area_take(this->get(), nanoseconds(limit)));
    }
    void lend() { detail::check(ha_area_lend(this->get())); }
    void recall() { detail::check(ha_area_recall(this->get())); }
    ha_synced sync()
    {
        ha_synced done = {};
        done.size = sizeof done;
        detail::check(ha_area_sync(this->get(), &done));
        return done;
    }
    // Waits until the visible version is at most `age` old.
    template <class Rep, class Period, class Rep2, class Period2>
    void wait_fresh(std::chrono::duration<Rep, Period> age, std::chrono::duration<Rep2, Period2> limit)
    {
        detail::check(ha_area_wait_fresh(this->get(), nanoseconds(age), nanoseconds(limit)));
    }
    void destroy() { detail::check(try_destroy()); }
#endif
};

// A worker. Owns its handle, except in the function of job::run, whose worker leaves by returning.
class worker : public detail::handle<ha_worker, ha_worker_leave> {
    using base = detail::handle<ha_worker, ha_worker_leave>;

public:
    using base::base;

    std::uint32_t rank() const noexcept
    {
        std::uint32_t rank = 0;
        ha_worker_rank(this->get(), &rank);
        return rank;
    }

    template <class T>
    area<T> create(status &out, const std::string &name, std::size_t size, const area_options &options = {})
    {
        ha_area *made = nullptr;
        out = ha_area_create(this->get(), name.c_str(), element<T>::type, size, &options, &made);
        return area<T>(made);
    }
    template <class T> area<T> attach(status &out, const std::string &name, std::uint64_t timeout_ns = 0)
    {
        ha_area *found = nullptr;
        out = ha_area_attach(this->get(), name.c_str(), element<T>::type, timeout_ns, &found);
        return area<T>(found);
    }
    // Takes over an area whose owner is dead or has dropped it; `loss` is null or gets the loss.
    template <class T> area<T> claim(status &out, const std::string &name, ha_loss *loss = nullptr)
    {
        ha_area *found = nullptr;
        if (loss != nullptr)
            loss->size = sizeof *loss;
        out = ha_area_claim(this->get(), name.c_str(), element<T>::type, &found, loss);
        return area<T>(found);
    }

    ha_status try_service() noexcept { return ha_service(this->get()); }
    ha_status try_sync() noexcept { return ha_sync(this->get(), nullptr); }
    ha_status try_barrier(std::uint64_t timeout_ns = HA_FOREVER) noexcept
    {
        return ha_barrier_within(this->get(), timeout_ns);
    }

#ifndef HECTARE_NO_EXCEPTIONS
    template <class T> area<T> create(const std::string &name, std::size_t size, const area_options &options = {})
    {
        ha_area *made = nullptr;
        detail::check(ha_area_create(this->get(), name.c_str(), element<T>::type, size, &options, &made));
        return area<T>(made);
    }
    template <class T> area<T> attach(const std::string &name)
    {
        ha_area *found = nullptr;
        detail::check(ha_area_attach(this->get(), name.c_str(), element<T>::type, 0, &found));
        return area<T>(found);
    }
    template <class T, class Rep, class Period>
    area<T> attach(const std::string &name, std::chrono::duration<Rep, Period> limit)
    {
        ha_area *found = nullptr;
        detail::check(ha_area_attach(this->get(), name.c_str(), element<T>::type, nanoseconds(limit), &found));
        return area<T>(found);
    }
    template <class T> area<T> claim(const std::string &name, ha_loss *loss = nullptr)
    {
        ha_area *found = nullptr;
        if (loss != nullptr)
            loss->size = sizeof *loss;
        detail::check(ha_area_claim(this->get(), name.c_str(), element<T>::type, &found, loss));
        return area<T>(found);
    }
    void service() { detail::check(ha_service(this->get())); }
    ha_synced sync()
    {
        ha_synced done = {};
        done.size = sizeof done;
        detail::check(ha_sync(this->get(), &done));
        return done;
    }
    void barrier() { detail::check(ha_barrier(this->get())); }
    template <class Rep, class Period> void barrier(std::chrono::duration<Rep, Period> limit)
    {
        detail::check(ha_barrier_within(this->get(), nanoseconds(limit)));
    }
    std::uint64_t tick()
    {
        std::uint64_t clock = 0;
        detail::check(ha_tick(this->get(), &clock));
        return clock;
    }
    void wait_clocks(std::uint64_t staleness) { detail::check(ha_wait_clocks(this->get(), staleness, HA_FOREVER)); }
    void wait_for_workers(std::size_t count)
    {
        detail::check(ha_wait_for_workers(this->get(), count, HA_FOREVER));
    }
#endif
};

// Which rows of which arrays each worker touches in each batch: see ha_row_plan. All threads may run it once it is built.
class row_plan : public detail::handle<ha_row_plan, ha_row_plan_close> {
    using base = detail::handle<ha_row_plan, ha_row_plan_close>;

public:
    using base::base;

    // `rows` has the number of rows of each array.
    static row_plan make(status &out, span<const std::size_t> rows, std::size_t batches, std::uint32_t workers)
    {
        ha_row_plan *made = nullptr;
        out = ha_row_plan_new(rows.data(), rows.size(), batches, workers, &made);
        return row_plan(made);
    }
    // `count` numbers of rows, each `stride` bytes behind the one before: fields of structs, for instance.
    ha_status try_add(std::uint32_t worker, std::size_t array, std::size_t batch, ha_row_access access,
                      const std::uint32_t *rows, std::size_t count, std::size_t stride = sizeof(std::uint32_t)) noexcept
    {
        return ha_row_plan_add(this->get(), worker, array, batch, access, rows, count, stride);
    }
    ha_status try_build() noexcept { return ha_row_plan_build(this->get()); }

#ifndef HECTARE_NO_EXCEPTIONS
    static row_plan make(span<const std::size_t> rows, std::size_t batches, std::uint32_t workers)
    {
        ha_row_plan *made = nullptr;
        detail::check(ha_row_plan_new(rows.data(), rows.size(), batches, workers, &made));
        return row_plan(made);
    }
    void writes(std::uint32_t worker, std::size_t array, std::size_t batch, const std::uint32_t *rows,
                std::size_t count, std::size_t stride = sizeof(std::uint32_t))
    {
        detail::check(try_add(worker, array, batch, HA_ROWS_WRITE, rows, count, stride));
    }
    void reads(std::uint32_t worker, std::size_t array, std::size_t batch, const std::uint32_t *rows,
               std::size_t count, std::size_t stride = sizeof(std::uint32_t))
    {
        detail::check(try_add(worker, array, batch, HA_ROWS_READ, rows, count, stride));
    }
    void build() { detail::check(try_build()); }
#endif
};

// A worker's part in a run of a plan, over one area for each of its arrays: see ha_rows. The destructor leaves the run
// without waiting, as after a failure; end() ends it with all others.
class rows : public detail::handle<ha_rows, ha_rows_close> {
    using base = detail::handle<ha_rows, ha_rows_close>;

public:
    using base::base;

    template <class... T>
    static rows begin(status &out, worker &worker, const row_plan &plan, std::size_t passes, const area<T> &...areas)
    {
        ha_area *const list[] = {areas.get()..., nullptr};
        ha_rows *made = nullptr;
        out = ha_rows_begin(worker.get(), plan.get(), passes, list, sizeof...(T), &made);
        return rows(made);
    }
    // Row 0 of an array of elements of type T; the others follow. The worker touches those of its batch.
    template <class T> T *data(status &out, std::size_t array) noexcept
    {
        void *start = nullptr;
        out = ha_rows_data(this->get(), array, &start);
        return static_cast<T *>(start);
    }
    // Ends the batch, and begins the next.
    ha_status try_next() noexcept { return ha_rows_next(this->get()); }
    // Ends the run, and empties this, but if a view is open.
    ha_status try_end() noexcept
    {
        const ha_status code = ha_rows_end(this->get());
        if (code != HA_VIEW_OPEN)
            this->release();
        return code;
    }

#ifndef HECTARE_NO_EXCEPTIONS
    template <class... T>
    static rows begin(worker &worker, const row_plan &plan, std::size_t passes, const area<T> &...areas)
    {
        ha_area *const list[] = {areas.get()..., nullptr};
        ha_rows *made = nullptr;
        detail::check(ha_rows_begin(worker.get(), plan.get(), passes, list, sizeof...(T), &made));
        return rows(made);
    }
    template <class T> T *data(std::size_t array)
    {
        void *start = nullptr;
        detail::check(ha_rows_data(this->get(), array, &start));
        return static_cast<T *>(start);
    }
    void next() { detail::check(try_next()); }
    void end() { detail::check(try_end()); }
#endif
};

// The index of an element in one dimension of an area: `constant` plus each variable of a loop times its factor. {-1, {1}} is
// i - 1 of a loop over i and j, and {0, {0, 1}} is j; `count` indices from there on.
struct subscript : ha_subscript {
    subscript(std::int64_t start, std::initializer_list<std::int64_t> variables, std::size_t indices = 1) noexcept
        : ha_subscript{start, {}, indices}
    {
        std::size_t at = 0;
        for (const std::int64_t factor : variables)
            if (at < HA_LOOP_DIMS)
                factors[at++] = factor;
    }
    // All of a dimension.
    static subscript whole() noexcept { return {0, {}, HA_WHOLE}; }
};

// A block of iterations, as the body of a loop gets it: see ha_block.
struct block : ha_block {
    // Where the first element of area number `area` of the loop lies, in the order of over().
    template <class T> T *data(std::size_t area) const noexcept { return static_cast<T *>(areas[area]); }
};

// A loop that several workers run as if it ran on one: see ha_loop.
class loop : public detail::handle<ha_loop, ha_loop_close> {
    using base = detail::handle<ha_loop, ha_loop_close>;

public:
    using base::base;

    // Over the values from `first` up to `last` of each variable, the outermost first, on workers 0 to `workers` - 1.
    static loop make(status &out, worker &worker, const std::string &name, ha_loop_order order,
                     span<const std::int64_t> first, span<const std::int64_t> last, std::uint32_t workers)
    {
        ha_loop *made = nullptr;
        if (first.size() != last.size())
            out = status(HA_BAD_ARGUMENT, "loop \"" + name + "\": " + std::to_string(first.size()) + " first values and " +
                                              std::to_string(last.size()) + " last values");
        else
            out = ha_loop_new(worker.get(), name.c_str(), order, first.data(), last.data(), first.size(), workers, &made);
        return loop(made);
    }
    // An area of the loop, as an array with these extents.
    template <class T> ha_status try_over(const area<T> &area, std::initializer_list<std::size_t> extents) noexcept
    {
        return ha_loop_area(this->get(), area.get(), extents.begin(), extents.size());
    }
    template <class T> ha_status try_read(const area<T> &area, std::initializer_list<subscript> at)
    {
        const auto list = plain(at);
        return ha_loop_read(this->get(), area.get(), list.data(), list.size());
    }
    template <class T> ha_status try_write(const area<T> &area, std::initializer_list<subscript> at)
    {
        const auto list = plain(at);
        return ha_loop_write(this->get(), area.get(), list.data(), list.size());
    }
    template <class T> ha_status try_update(const area<T> &area, std::initializer_list<subscript> at)
    {
        const auto list = plain(at);
        return ha_loop_update(this->get(), area.get(), list.data(), list.size());
    }
    // What it depends on, and how it runs and why.
    std::string explain(status &out)
    {
        std::size_t length = 0;
        out = ha_loop_explain(this->get(), nullptr, 0, &length);
        std::string text(out.ok() ? length + 1 : 0, '\0');
        if (out.ok())
            out = ha_loop_explain(this->get(), &text[0], text.size(), &length);
        text.resize(out.ok() ? length : 0);
        return text;
    }
    // Runs `body(const block &)`, which returns an int, 0 for success. An exception that escapes it ends the program.
    template <class Body> status try_run(Body &&body)
    {
        return ha_loop_run(this->get(), call<std::remove_reference_t<Body>>,
                           const_cast<void *>(static_cast<const void *>(std::addressof(body))));
    }

#ifndef HECTARE_NO_EXCEPTIONS
    static loop make(worker &worker, const std::string &name, ha_loop_order order, std::initializer_list<std::int64_t> first,
                     std::initializer_list<std::int64_t> last, std::uint32_t workers)
    {
        status out;
        loop made = make(out, worker, name, order, {first.begin(), first.size()}, {last.begin(), last.size()}, workers);
        if (!out)
            throw error(out);
        return made;
    }
    template <class T> loop &over(const area<T> &area, std::initializer_list<std::size_t> extents)
    {
        detail::check(try_over(area, extents));
        return *this;
    }
    template <class T> loop &read(const area<T> &area, std::initializer_list<subscript> at)
    {
        detail::check(try_read(area, at));
        return *this;
    }
    template <class T> loop &write(const area<T> &area, std::initializer_list<subscript> at)
    {
        detail::check(try_write(area, at));
        return *this;
    }
    template <class T> loop &update(const area<T> &area, std::initializer_list<subscript> at)
    {
        detail::check(try_update(area, at));
        return *this;
    }
    std::string explain()
    {
        status out;
        auto text = explain(out);
        detail::check(out.code());
        return text;
    }
    // Runs `body(const block &)`. An exception that escapes it ends the run, and is rethrown here.
    template <class Body> void run(Body &&body)
    {
        std::exception_ptr thrown;
        const ha_status code = try_run([&](const block &part) {
            try {
                body(part);
                return 0;
            } catch (...) {
                thrown = std::current_exception();
                return 1;
            }
        }).code();
        if (thrown)
            std::rethrow_exception(thrown);
        detail::check(code);
    }
#endif

private:
    static std::vector<ha_subscript> plain(std::initializer_list<subscript> at)
    {
        return std::vector<ha_subscript>(at.begin(), at.end());
    }

    template <class Body> static int call(const ha_block *raw, void *argument)
    {
        block it{*raw};
        return (*static_cast<Body *>(argument))(static_cast<const block &>(it));
    }
};

// The rank of this process according to its launcher; 0 of 1 without one.
struct launched {
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
};

inline launched launch(status &out)
{
    launched found;
    out = ha_launch(&found.rank, &found.size);
    return found;
}

#ifndef HECTARE_NO_EXCEPTIONS
inline launched launch()
{
    launched found;
    detail::check(ha_launch(&found.rank, &found.size));
    return found;
}
#endif

// Settings of a job: ha_job_options at their defaults.
struct job_options : ha_job_options {
    job_options() noexcept { ha_job_options_init(this); }
};

// A job.
class job : public detail::handle<ha_job, ha_job_close> {
    using base = detail::handle<ha_job, ha_job_close>;

public:
    using base::base;

    static job embedded(status &out, const job_options &options = {})
    {
        ha_job *made = nullptr;
        out = ha_job_embedded(&options, &made);
        return job(made);
    }
    // The job of `hectare run` if that started the program, else one inside the program.
    static job open(status &out, const job_options &options = {})
    {
        ha_job *made = nullptr;
        out = ha_job_open(&options, &made);
        return job(made);
    }
    static job connect(status &out, const std::string &name)
    {
        ha_job *made = nullptr;
        out = ha_job_connect(name.c_str(), &made);
        return job(made);
    }
    // Makes the calling thread a worker.
    worker join(status &out)
    {
        ha_worker *made = nullptr;
        out = ha_worker_join(this->get(), &made);
        return worker(made);
    }
    // Makes the calling thread the worker of this rank.
    worker join_at(status &out, std::uint32_t rank)
    {
        ha_worker *made = nullptr;
        out = ha_worker_join_at(this->get(), rank, &made);
        return worker(made);
    }

    // Runs `body(worker &)`, which returns an int, 0 for success, on `count` workers in their own threads. An exception
    // that escapes it ends the program.
    template <class Body> status try_run(std::size_t count, Body &&body)
    {
        return ha_run(this->get(), count, plain<std::remove_reference_t<Body>>,
                      const_cast<void *>(static_cast<const void *>(std::addressof(body))));
    }

#ifndef HECTARE_NO_EXCEPTIONS
    static job embedded(const job_options &options = {})
    {
        ha_job *made = nullptr;
        detail::check(ha_job_embedded(&options, &made));
        return job(made);
    }
    static job open(const job_options &options = {})
    {
        ha_job *made = nullptr;
        detail::check(ha_job_open(&options, &made));
        return job(made);
    }
    static job connect(const std::string &name)
    {
        ha_job *made = nullptr;
        detail::check(ha_job_connect(name.c_str(), &made));
        return job(made);
    }
    worker join()
    {
        ha_worker *made = nullptr;
        detail::check(ha_worker_join(this->get(), &made));
        return worker(made);
    }
    worker join_at(std::uint32_t rank)
    {
        ha_worker *made = nullptr;
        detail::check(ha_worker_join_at(this->get(), rank, &made));
        return worker(made);
    }

    // Runs `body(worker &)` on `count` workers in their own threads. The first exception that escapes one is
    // rethrown here, when all have ended.
    template <class Body> void run(std::size_t count, Body &&body)
    {
        caught<std::remove_reference_t<Body>> all{body, {}, nullptr};
        const ha_status code = ha_run(this->get(), count, catching<std::remove_reference_t<Body>>, &all);
        if (all.first)
            std::rethrow_exception(all.first);
        detail::check(code);
    }
#endif

private:
    template <class Body> static int plain(ha_worker *raw, void *argument)
    {
        worker it(raw);
        const int code = (*static_cast<Body *>(argument))(it);
        it.release();
        return code;
    }

#ifndef HECTARE_NO_EXCEPTIONS
    template <class Body> struct caught {
        Body &body;
        std::mutex lock;
        std::exception_ptr first;
    };
    template <class Body> static int catching(ha_worker *raw, void *argument)
    {
        auto &all = *static_cast<caught<Body> *>(argument);
        worker it(raw);
        int code = 0;
        try {
            all.body(it);
        } catch (...) {
            std::lock_guard<std::mutex> guard(all.lock);
            if (!all.first)
                all.first = std::current_exception();
            code = 1;
        }
        it.release();
        return code;
    }
#endif
};

#ifndef HECTARE_NO_EXCEPTIONS

namespace detail {
// What copies of an allocator share.
struct allocations {
    ha_worker *of;
    std::string name;
    area_options options;
    std::size_t made;
    std::vector<std::pair<const void *, ha_area *>> areas;
};
} // namespace detail

// An allocator that puts a container's elements into areas of a worker: with it, a model that is a
// std::vector<double> becomes one that Hectare publishes, with few changes. Each allocation is an area: the first is named
// `name`, later ones `name`/1, `name`/2 and so on; so create a vector with its final size. Writes are
// tracked as the options say, automatically by default, so that update loops need no change; with
// HA_TRACK_LOGGED, log by `allocator.of(vector.data())`.
//
// The worker must outlive the container, and both are for one thread. Copies of the allocator share the worker.
//
//     hectare::allocator<double> place(worker, "model");
//     std::vector<double, hectare::allocator<double>> model(n, 0.0, place);
//     ... model[i] += step;                    // as before
//     worker.service();                        // once per batch
template <class T> class allocator {
public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    allocator(worker &of, std::string name)
        : allocator(of, std::move(name), area_options().with_tracking(HA_TRACK_AUTOMATIC))
    {
    }
    allocator(worker &of, std::string name, const area_options &options)
        : shared_(std::make_shared<detail::allocations>(
              detail::allocations{of.get(), std::move(name), options, 0, {}}))
    {
    }
    template <class U> allocator(const allocator<U> &other) noexcept : shared_(other.shared_) {}

    T *allocate(std::size_t count)
    {
        const std::string name =
            shared_->made == 0 ? shared_->name : shared_->name + "/" + std::to_string(shared_->made);
        ha_area *made = nullptr;
        detail::check(ha_area_create(shared_->of, name.c_str(), element<T>::type, count, &shared_->options, &made));
        area<T> typed(made);
        T *data = typed.writer().data();
        shared_->areas.emplace_back(data, typed.get());
        // From here on the list has it.
        typed.release();
        shared_->made++;
        return data;
    }

    // The area is deleted.
    void deallocate(T *data, std::size_t) noexcept
    {
        for (auto it = shared_->areas.begin(); it != shared_->areas.end(); ++it) {
            if (it->first == data) {
                ha_area_delete(it->second);
                shared_->areas.erase(it);
                return;
            }
        }
    }

    // The area behind elements that this allocator gave out, for ha_log and its relatives; null if there is none.
    ha_area *of(const T *data) const noexcept
    {
        for (const auto &one : shared_->areas)
            if (one.first == data)
                return one.second;
        return nullptr;
    }

    template <class U> bool operator==(const allocator<U> &other) const noexcept { return shared_ == other.shared_; }
    template <class U> bool operator!=(const allocator<U> &other) const noexcept { return shared_ != other.shared_; }

private:
    template <class U> friend class allocator;
    std::shared_ptr<detail::allocations> shared_;
};

#endif

} // namespace hectare

#endif
