/* The least that a program over DPDK does: frames of one kind as fast as the port takes them, or one there and back.
 * bare send|receive|ask|answer DEVICE FRAME ROOM MILLISECONDS PROCESSORS OWN_IP PEER_IP PEER_MAC
 * The frames are those of our transport: IPv4 and UDP, for an address that the system does not have. */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST 64
#define WARM 500
#define TURNS 20000

static struct rte_mempool *pool;
static uint16_t port, frame;
static struct headers {
    struct rte_ether_hdr ether;
    struct rte_ipv4_hdr ip;
    struct rte_udp_hdr udp;
} headers;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void prepare(const char *own, const char *peer, const char *mac)
{
    uint16_t packet = frame - sizeof headers.ether;
    uint8_t *to = headers.ether.dst_addr.addr_bytes;
    headers.ip.src_addr = inet_addr(own);
    headers.ip.dst_addr = inet_addr(peer);
    check(sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", to, to + 1, to + 2, to + 3, to + 4, to + 5) == 6, "an address");
    rte_eth_macaddr_get(port, &headers.ether.src_addr);
    headers.ether.ether_type = htons(RTE_ETHER_TYPE_IPV4);
    headers.ip.version_ihl = 0x45;
    headers.ip.total_length = htons(packet);
    headers.ip.fragment_offset = htons(0x4000);
    headers.ip.time_to_live = 64;
    headers.ip.next_proto_id = IPPROTO_UDP;
    headers.ip.hdr_checksum = rte_ipv4_cksum(&headers.ip);
    headers.udp.src_port = headers.udp.dst_port = htons(7300);
    headers.udp.dgram_len = htons(packet - sizeof headers.ip);
}

static uint16_t make(struct rte_mbuf **mbufs, uint16_t count)
{
    if (rte_pktmbuf_alloc_bulk(pool, mbufs, count))
        return 0;
    for (uint16_t at = 0; at < count; at++) {
        /* The payload is whatever is there. */
        memcpy(rte_pktmbuf_mtod(mbufs[at], uint8_t *), &headers, sizeof headers);
        mbufs[at]->data_len = mbufs[at]->pkt_len = frame;
    }
    return count;
}

static void send_all(struct rte_mbuf **mbufs, uint16_t count)
{
    for (uint16_t sent = 0; sent < count;)
        sent += rte_eth_tx_burst(port, 0, mbufs + sent, count - sent);
}

/* Frames of the other side; they are given back. */
static unsigned take(uint64_t *bytes)
{
    struct rte_mbuf *mbufs[BURST];
    uint16_t count = rte_eth_rx_burst(port, 0, mbufs, BURST);
    unsigned ours = 0;
    for (uint16_t at = 0; at < count; at++) {
        struct headers *it = rte_pktmbuf_mtod(mbufs[at], struct headers *);
        if (it->ether.ether_type == headers.ether.ether_type && it->ip.dst_addr == headers.ip.src_addr
            && it->udp.dst_port == headers.udp.dst_port)
            ours++, *bytes += mbufs[at]->pkt_len;
    }
    rte_pktmbuf_free_bulk(mbufs, count);
    return ours;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    check(argc == 10, "bare send|receive|ask|answer DEVICE FRAME ROOM MILLISECONDS PROCESSORS OWN_IP PEER_IP PEER_MAC");
    const char *role = argv[1];
    char cores[64];
    snprintf(cores, sizeof cores, "0@(0-%d)", atoi(argv[6]) - 1);
    char *eal[] = { "bare", "--lcores", cores, "--no-huge", "-m", "256", "--no-shconf", "--no-pci", "--no-telemetry",
                    "--log-level=warning", "--vdev", argv[2], NULL };
    check(rte_eal_init(sizeof eal / sizeof *eal - 1, eal) >= 0, "EAL does not start");
    check(rte_eth_dev_count_avail() == 1, "no device");
    frame = atoi(argv[3]);
    pool = rte_pktmbuf_pool_create("pool", 4095, 256, 0, atoi(argv[4]) + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    check(pool != NULL, "no memory for buffers");
    struct rte_eth_conf conf;
    memset(&conf, 0, sizeof conf);
    check(rte_eth_dev_configure(port, 1, 1, &conf) == 0, "configure");
    check(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) == 0, "receive queue");
    check(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) == 0, "send queue");
    check(rte_eth_dev_start(port) == 0, "start");
    prepare(argv[7], argv[8], argv[9]);

    struct rte_mbuf *mbufs[BURST];
    uint64_t bytes = 0, window = atoi(argv[5]) * 1000000ull;
    printf("ready\n");
    fflush(stdout);
    if (!strcmp(role, "send")) {
        for (;;)
            send_all(mbufs, make(mbufs, BURST));
    } else if (!strcmp(role, "receive")) {
        while (!take(&bytes))
            ;
        for (uint64_t start = now(); now() - start < 200000000;)
            take(&bytes);
        printf("begin\n");
        fflush(stdout);
        bytes = 0;
        uint64_t start = now(), frames = 0;
        while (now() - start < window)
            frames += take(&bytes);
        /* As payload of UDP. */
        printf("end %llu %llu\n", (unsigned long long)(bytes - frames * 42), (unsigned long long)(now() - start));
    } else if (!strcmp(role, "answer")) {
        for (;;)
            if (take(&bytes))
                send_all(mbufs, make(mbufs, 1));
    } else {
        static uint64_t times[TURNS];
        for (int turn = -WARM; turn < TURNS; turn++) {
            uint64_t start = now();
            send_all(mbufs, make(mbufs, 1));
            /* The first ones may be lost. */
            while (!take(&bytes) && now() - start < 100000000)
                ;
            if (turn >= 0)
                times[turn] = now() - start;
        }
        qsort(times, TURNS, sizeof *times, compare);
        printf("times %f %f\n", times[TURNS / 2] / 1e3, times[TURNS / 100 * 99] / 1e3);
    }
    fflush(stdout);
    return 0;
}
