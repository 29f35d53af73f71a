/* What Rust sees of DPDK: pointers without layout, and structs of our own. `ffi.rs` says the same in Rust. */
#ifndef HECTARE_DPDK_SHIM_H
#define HECTARE_DPDK_SHIM_H
#include <stdint.h>

/* A frame that this side holds: it goes back by hd_free or hd_transmit, once. */
struct hd_frame {
    void *mbuf;
    uint8_t *data;
    uint32_t length;
};

struct hd_stats {
    uint64_t received, sent, received_bytes, sent_bytes;
    uint64_t missed, receive_errors, send_errors, no_buffers;
};

struct hd_settings {
    uint32_t mtu;       /* 0: as the driver has it */
    uint32_t room;      /* bytes of a buffer, without the headroom */
    uint32_t buffers;   /* how many */
    uint32_t ring;      /* descriptors a direction */
};

/* Where opening failed. Their texts are in `error.rs`. */
enum hd_step { HD_PROBE = 1, HD_FIND, HD_OWN, HD_INFO, HD_ROOM, HD_POOL, HD_CONFIGURE, HD_MTU, HD_RX, HD_TX, HD_START, HD_MAC };

struct hd_port;

/* Each returns 0 or an errno above 0. hd_start, hd_open, hd_close and hd_log_*: one caller at a time. */
int hd_start(int argc, char **argv);
int hd_open(const char *device, const struct hd_settings *settings, struct hd_port **port, int *step);
int hd_stats(const struct hd_port *port, struct hd_stats *stats);

void hd_close(struct hd_port *port);
void hd_mac(const struct hd_port *port, uint8_t mac[6]);
const char *hd_driver(const struct hd_port *port);
int hd_link_is_up(const struct hd_port *port);

/* How many frames: all `count`, each of `length` bytes, or none. */
uint32_t hd_allocate(struct hd_port *port, struct hd_frame *frames, uint32_t count, uint32_t length);
/* How many of the first were taken; the others are still held. */
uint32_t hd_transmit(struct hd_port *port, const struct hd_frame *frames, uint32_t count);
uint32_t hd_receive(struct hd_port *port, struct hd_frame *frames, uint32_t count);
void hd_free(const struct hd_frame *frames, uint32_t count);

/* From here on what DPDK logs is kept, until hd_log_end copies it, with a 0 behind; later it logs to stderr. */
void hd_log_begin(void);
void hd_log_end(char *text, uint32_t room);
#endif
