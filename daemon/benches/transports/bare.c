/* The least that a program over DPDK does: frames of one kind as fast as the port takes them, or one there and back.
 * bare send|receive|ask|answer DEVICE FRAME ROOM MILLISECONDS PROCESSORS */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST 64
#define WARM 500
#define TURNS 20000

static struct rte_mempool *pool;
static uint16_t port, frame;

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

static uint16_t make(struct rte_mbuf **mbufs, uint16_t count, uint8_t who)
{
    if (rte_pktmbuf_alloc_bulk(pool, mbufs, count))
        return 0;
    for (uint16_t at = 0; at < count; at++) {
        uint8_t *bytes = rte_pktmbuf_mtod(mbufs[at], uint8_t *);
        memset(bytes, 0xff, 6);
        memset(bytes + 6, 2, 6);
        bytes[6] = 2, bytes[11] = who;
        bytes[12] = 0x88, bytes[13] = 0xb5; /* for experiments */
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
        uint8_t *frame_bytes = rte_pktmbuf_mtod(mbufs[at], uint8_t *);
        if (frame_bytes[12] == 0x88 && frame_bytes[13] == 0xb5)
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
    check(argc == 7, "bare send|receive|ask|answer DEVICE FRAME ROOM MILLISECONDS PROCESSORS");
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
    rte_eth_promiscuous_enable(port);

    struct rte_mbuf *mbufs[BURST];
    uint64_t bytes = 0, window = atoi(argv[5]) * 1000000ull;
    printf("ready\n");
    fflush(stdout);
    if (!strcmp(role, "send")) {
        for (;;)
            send_all(mbufs, make(mbufs, BURST, 1));
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
                send_all(mbufs, make(mbufs, 1, 2));
    } else {
        static uint64_t times[TURNS];
        for (int turn = -WARM; turn < TURNS; turn++) {
            uint64_t start = now();
            send_all(mbufs, make(mbufs, 1, 1));
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
