
// The hot path, inline: no call if everything is already logged.

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define HA_LIKELY(condition) __builtin_expect(!!(condition), 1)
#else
#define HA_LIKELY(condition) (condition)
#endif

// Logs that elements first to first + count - 1 were written, or are about to be: before or after the write, but
// between the same two synchronization points. Logging twice is harmless. The granularity is 64-byte lines, or rows if
// the area has rows.
//
// If the elements are already logged, this makes no call and does not check the thread; the other checks are
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

// Logs that row `row` of the area (ha_area_options.row) was written, or is about to be. If the row is already logged,
// this tests one bit.
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
