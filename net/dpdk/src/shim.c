/* The functions of DPDK that Hectare uses. Most of those for packets are inline in its headers, so C has to call them. */
#define _GNU_SOURCE /* fopencookie */
#include "shim.h"
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 64

struct hd_port {
    uint16_t id;
    struct rte_mempool *pool;
    struct rte_device *device;
    const char *driver;
    uint8_t mac[6];
};

static int positive(int code)
{
    return code < 0 ? -code : code;
}

int hd_start(int argc, char **argv)
{
    if (rte_eal_init(argc, argv) >= 0)
        return 0;
    return rte_errno ? positive(rte_errno) : EIO;
}

void hd_close(struct hd_port *port)
{
    rte_eth_dev_stop(port->id);
    rte_eth_dev_close(port->id);
    rte_dev_remove(port->device);
    rte_mempool_free(port->pool);
    free(port);
}

int hd_open(const char *device, const struct hd_settings *settings, struct hd_port **out, int *step)
{
    static unsigned int pools; /* the caller holds a lock */
    static struct rte_eth_dev_owner owner = { .id = RTE_ETH_DEV_NO_OWNER };
    struct rte_eth_dev_owner before;
    struct rte_eth_dev_info info;
    struct rte_eth_conf conf;
    struct rte_ether_addr mac;
    struct rte_dev_iterator iterator;
    uint16_t id, found = RTE_MAX_ETHPORTS, rx, tx;
    char name[RTE_MEMPOOL_NAMESIZE];
    int code, socket;
    struct hd_port *port;

    *step = HD_PROBE;
    /* A device that EAL was told of is there already. */
    if ((code = rte_dev_probe(device)) < 0 && code != -EEXIST)
        return positive(code);
    *step = HD_FIND;
    RTE_ETH_FOREACH_MATCHING_DEV(id, device, &iterator) {
        found = id;
        rte_eth_iterator_cleanup(&iterator);
        break;
    }
    if (found == RTE_MAX_ETHPORTS)
        return ENODEV;
    *step = HD_OWN;
    if (owner.id == RTE_ETH_DEV_NO_OWNER) {
        snprintf(owner.name, sizeof owner.name, "hectare");
        if ((code = rte_eth_dev_owner_new(&owner.id)) < 0)
            return positive(code);
    }
    if ((code = rte_eth_dev_owner_get(found, &before)) < 0)
        return positive(code);
    if (before.id != RTE_ETH_DEV_NO_OWNER)
        return EBUSY;
    if ((code = rte_eth_dev_owner_set(found, &owner)) < 0)
        return positive(code);
    *step = HD_INFO;
    if ((code = rte_eth_dev_info_get(found, &info)) < 0)
        return positive(code);
    if (!(port = calloc(1, sizeof *port)))
        return ENOMEM;
    port->id = found;
    port->device = info.device;
    port->driver = info.driver_name;
    socket = rte_eth_dev_socket_id(found);

    *step = HD_ROOM;
    code = EINVAL;
    if (settings->room > UINT16_MAX - RTE_PKTMBUF_HEADROOM || settings->mtu > UINT16_MAX)
        goto close;
    *step = HD_POOL;
    snprintf(name, sizeof name, "hectare%u", pools++);
    /* Without caches: they belong to DPDK's own threads, and the one that uses the port is not one of them. */
    port->pool = rte_pktmbuf_pool_create(name, settings->buffers, 0, 0, settings->room + RTE_PKTMBUF_HEADROOM,
                                         socket < 0 ? SOCKET_ID_ANY : socket);
    code = positive(rte_errno);
    if (!port->pool)
        goto close;

    *step = HD_CONFIGURE;
    memset(&conf, 0, sizeof conf);
    if (settings->mtu)
        conf.rxmode.mtu = settings->mtu;
    if ((code = rte_eth_dev_configure(found, 1, 1, &conf)) < 0)
        goto close;
    *step = HD_MTU;
    if (settings->mtu && (code = rte_eth_dev_set_mtu(found, settings->mtu)) < 0)
        goto close;
    rx = tx = settings->ring;
    *step = HD_RX;
    if ((code = rte_eth_dev_adjust_nb_rx_tx_desc(found, &rx, &tx)) < 0)
        goto close;
    if ((code = rte_eth_rx_queue_setup(found, 0, rx, socket < 0 ? SOCKET_ID_ANY : socket, NULL, port->pool)) < 0)
        goto close;
    *step = HD_TX;
    if ((code = rte_eth_tx_queue_setup(found, 0, tx, socket < 0 ? SOCKET_ID_ANY : socket, NULL)) < 0)
        goto close;
    *step = HD_START;
    if ((code = rte_eth_dev_start(found)) < 0)
        goto close;
    *step = HD_MAC;
    if ((code = rte_eth_macaddr_get(found, &mac)) < 0)
        goto close;
    memcpy(port->mac, mac.addr_bytes, sizeof port->mac);
    *out = port;
    return 0;
close:
    hd_close(port);
    return code ? positive(code) : EIO;
}

void hd_mac(const struct hd_port *port, uint8_t mac[6])
{
    memcpy(mac, port->mac, sizeof port->mac);
}

const char *hd_driver(const struct hd_port *port)
{
    return port->driver;
}

int hd_link_is_up(const struct hd_port *port)
{
    struct rte_eth_link link;

    return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int hd_stats(const struct hd_port *port, struct hd_stats *stats)
{
    struct rte_eth_stats s;
    int code = rte_eth_stats_get(port->id, &s);

    if (code < 0)
        return positive(code);
    *stats = (struct hd_stats){
        .received = s.ipackets, .sent = s.opackets, .received_bytes = s.ibytes, .sent_bytes = s.obytes,
        .missed = s.imissed, .receive_errors = s.ierrors, .send_errors = s.oerrors, .no_buffers = s.rx_nombuf,
    };
    return 0;
}

uint32_t hd_allocate(struct hd_port *port, struct hd_frame *frames, uint32_t count, uint32_t length)
{
    struct rte_mbuf *mbufs[BURST];
    uint32_t i;

    if (count > BURST || length > UINT16_MAX || rte_pktmbuf_alloc_bulk(port->pool, mbufs, count) != 0)
        return 0;
    for (i = 0; i < count; i++) {
        uint8_t *data = (uint8_t *)rte_pktmbuf_append(mbufs[i], length);

        if (!data) {
            rte_pktmbuf_free_bulk(mbufs, count);
            return 0;
        }
        frames[i] = (struct hd_frame){ mbufs[i], data, length };
    }
    return count;
}

uint32_t hd_transmit(struct hd_port *port, const struct hd_frame *frames, uint32_t count)
{
    struct rte_mbuf *mbufs[BURST];
    uint32_t i;

    if (count > BURST)
        count = BURST;
    for (i = 0; i < count; i++) {
        mbufs[i] = frames[i].mbuf;
        mbufs[i]->data_len = frames[i].length;
        mbufs[i]->pkt_len = frames[i].length;
    }
    return rte_eth_tx_burst(port->id, 0, mbufs, count);
}

uint32_t hd_receive(struct hd_port *port, struct hd_frame *frames, uint32_t count)
{
    struct rte_mbuf *mbufs[BURST];
    uint32_t i, kept = 0, came;

    came = rte_eth_rx_burst(port->id, 0, mbufs, count > BURST ? BURST : count);
    for (i = 0; i < came; i++) {
        /* A buffer takes a whole frame, so what lies in several is larger than the link carries. */
        if (mbufs[i]->nb_segs != 1) {
            rte_pktmbuf_free(mbufs[i]);
            continue;
        }
        frames[kept++] = (struct hd_frame){ mbufs[i], rte_pktmbuf_mtod(mbufs[i], uint8_t *), mbufs[i]->data_len };
    }
    return kept;
}

void hd_free(const struct hd_frame *frames, uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count; i++)
        rte_pktmbuf_free(frames[i].mbuf);
}

/* The stream is never closed: threads of DPDK log when they like. Its lock guards what is kept. */
static FILE *log_stream;
static int log_is_kept;
static char kept[4096];
static size_t kept_length;

static ssize_t log_write(void *cookie, const char *text, size_t length)
{
    size_t room = sizeof kept - kept_length, part = length < room ? length : room;

    (void)cookie;
    if (!log_is_kept) {
        fwrite(text, 1, length, stderr);
    } else {
        memcpy(kept + kept_length, text, part);
        kept_length += part;
    }
    return length;
}

void hd_log_begin(void)
{
    if (!log_stream) {
        log_stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = log_write });
        if (!log_stream)
            return;
        setvbuf(log_stream, NULL, _IOLBF, 0);
        rte_openlog_stream(log_stream);
    }
    flockfile(log_stream);
    log_is_kept = 1;
    kept_length = 0;
    funlockfile(log_stream);
}

void hd_log_end(char *text, uint32_t room)
{
    size_t length = 0;

    if (log_stream) {
        flockfile(log_stream);
        fflush(log_stream);
        log_is_kept = 0;
        length = kept_length < room ? kept_length : room - 1;
        memcpy(text, kept, length);
        funlockfile(log_stream);
    }
    text[length] = 0;
}
