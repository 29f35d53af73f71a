use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn worker(rank: u32, state: &'static str, rounds: f64, bytes: f64, late: u64) -> WorkerSample {
    WorkerSample {
        rank,
        pid: 4000 + rank,
        tid: 4000 + rank,
        state,
        host: None,
        clock: 5,
        stands_s: None,
        rounds: 10,
        rounds_per_s: Some(rounds),
        copied_bytes: 0,
        bytes_per_s: Some(bytes),
        behind_rounds: late,
        late,
        waited_for: Some(0.25),
    }
}

fn area(name: &str, age_s: f64) -> AreaSample {
    AreaSample {
        name: name.into(),
        owner: Some(1),
        bytes: 2048,
        term: Some(0),
        version: Some(7),
        versions_per_s: None,
        age_s: Some(age_s),
        dirty: false,
    }
}

fn sample() -> Sample {
    let job = JobSample {
        job: "mf".into(),
        members: 3,
        ranks: 3,
        member_deaths: 1,
        resident_bytes: 3 << 20,
        rounds: 100,
        rounds_per_s: Some(1234.5),
        copied_bytes: 0,
        bytes_per_s: Some(5e6),
        abandoned: 2,
        postponed: 0,
        peers: Vec::new(),
        workers: vec![
            worker(0, "live", 5.0, 300.0, 0),
            worker(1, "straggler", 1.0, 100.0, 9),
            worker(2, "dead", 3.0, 700.0, 1),
        ],
        areas: vec![area("users/0", 90.0), AreaSample { dirty: true, ..area("items/0", 75.0) }],
        areas_omitted: 0,
    };
    Sample { time_s: 0.0, interval_s: 1.0, jobs: vec![job] }
}

fn picture(view: View, width: u16, height: u16) -> (Vec<String>, ratatui::buffer::Buffer) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let sample = sample();
    terminal.draw(|frame| draw(frame, &sample, view)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    ((0..height).map(line).collect(), buffer)
}

const VIEW: View =
    View { sort: Sort::Rank, areas_by_name: false, paused: false, absent: false, interval_s: 1.0, scroll: 0 };

#[test]
fn everything_is_in_the_picture() {
    let (lines, buffer) = picture(VIEW, 100, 16);
    assert_eq!(
        lines[..8],
        [
            "hectare top: 1 job, 3 workers, 2 not at work, every 1.0 s",
            "JOB  MEMBERS  RANKS  DIED  MEMORY   ROUNDS/s  BYTES/s    ABANDONED  POSTPONED",
            "mf   3        3      1     3.0 MiB  1234      4.8 MiB/s  2          0",
            "",
            "JOB  RANK  PID   STATE      ROUNDS/s  BYTES/s  BEHIND  LATE  WAITED FOR",
            "mf   0     4000  live       5.0       300 B/s  0       0     25 %",
            "mf   1     4001  straggler  1.0       100 B/s  9       9     25 %",
            "mf   2     4002  dead       3.0       700 B/s  1       1     25 %",
        ]
    );
    let areas: Vec<&String> = lines.iter().skip_while(|line| !line.contains("AREA")).take(3).collect();
    assert_eq!(
        areas,
        [
            "JOB  AREA     OWNER  SIZE     VERSION  VERSIONS/s  STATE  AGE",
            "mf   items/0  1      2.0 KiB  0.7      -           dirty  75.0 s",
            "mf   users/0  1      2.0 KiB  0.7      -           clean  90.0 s",
        ]
    );
    assert!(lines.last().unwrap().starts_with("q quit  p pause  up/down scroll  workers by rank"));
    assert_eq!((buffer[(0, 6)].fg, buffer[(0, 7)].fg), (Color::Yellow, Color::Red));
}

/// A host after so many sessions, of which the last has sent and lost so many packets of 1000 bytes.
fn peer(sessions: u64, sent: Option<u64>, lost: u64) -> hectare_wire::PeerStanding {
    let session = sent.map(|sent| hectare_wire::SessionStanding {
        boot: 1,
        seal: "none".into(),
        heard_ms: 0,
        round_trip_ns: 61_000,
        min_round_trip_ns: 50_000,
        path_mtu: 1500,
        window: 0,
        in_flight: 0,
        sent,
        sent_bytes: sent * 1000,
        received: 0,
        received_bytes: 4096,
        acked: 0,
        lost,
        congestion_events: 0,
        probes: 0,
        black_holes: 0,
    });
    let address = "10.0.0.2:7117".parse().unwrap();
    hectare_wire::PeerStanding {
        host: 1,
        name: "b".into(),
        address,
        link: "udp".into(),
        link_reason: "it is".into(),
        since_ms: 1500,
        sessions,
        reason: None,
        session,
    }
}

#[test]
fn other_hosts_have_a_line_each() {
    let of = |now: &hectare_wire::PeerStanding, then: &hectare_wire::PeerStanding| {
        super::super::peers::sample(now, Some((2.0, then)))
    };
    let connected = of(&peer(1, Some(300), 20), &peer(1, Some(100), 10));
    let cells = peer_cells("mf", &connected);
    let expected =
        ["mf", "b", "10.0.0.2:7117", "connected", "1.5 s", "61 us", "97.7 KiB/s", "0 B/s", "5.0 %"];
    assert_eq!(cells, expected);
    // Of another session, or of none, there are no rates.
    for (now, then) in [(peer(2, Some(9), 0), peer(1, Some(100), 0)), (peer(1, None, 0), peer(1, Some(1), 0))]
    {
        let cells = peer_cells("mf", &of(&now, &then));
        assert_eq!(cells[6..], ["-", "-", "-"]);
        assert_eq!(cells[3], if now.session.is_some() { "connected" } else { "away" });
    }
    let mut sample = sample();
    sample.jobs[0].peers = vec![connected, of(&peer(1, None, 0), &peer(1, None, 0))];
    let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &sample, VIEW)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    assert_eq!(
        [4, 5, 6].map(line),
        [
            "JOB  HOST  ADDRESS        STATE      FOR    ROUND TRIP  SENT/s      RECEIVED/s  LOST",
            "mf   b     10.0.0.2:7117  connected  1.5 s  61 us       97.7 KiB/s  0 B/s       5.0 %",
            "mf   b     10.0.0.2:7117  away       1.5 s  -           -           -           -",
        ]
    );
    assert_eq!(buffer[(0, 6)].fg, Color::Red);
    assert!(line(8).starts_with("JOB  RANK"));
}

#[test]
fn workers_are_in_the_order_that_was_asked_for() {
    let order = |sort, scroll| {
        let (lines, _) = picture(View { sort, scroll, ..VIEW }, 100, 20);
        let of = lines.iter().filter_map(|line| line.strip_prefix("mf   ")?.split_whitespace().nth(1));
        of.filter_map(|pid| pid.strip_prefix("400").map(|rank| rank.parse().unwrap())).collect::<Vec<u32>>()
    };
    assert_eq!(order(Sort::Rank, 0), [0, 1, 2]);
    assert_eq!(order(Sort::Rounds, 0), [0, 2, 1]);
    assert_eq!(order(Sort::Bytes, 0), [2, 0, 1]);
    assert_eq!(order(Sort::Late, 0), [1, 2, 0]);
    assert_eq!(order(Sort::Rank, 2), [2]);
    assert_eq!(order(Sort::Rank, 99), [2], "the last one stays");
}

#[test]
fn a_small_terminal_and_a_pause_are_no_trouble() {
    for (width, height) in [(1, 1), (20, 3), (40, 6), (300, 4)] {
        picture(VIEW, width, height);
    }
    assert!(picture(View { paused: true, absent: false, ..VIEW }, 100, 16).0[0].ends_with("PAUSED"));
    let by_name = picture(View { areas_by_name: true, ..VIEW }, 100, 16).0.join("\n");
    assert!(by_name.find("items/0") < by_name.find("users/0"));
}

/// A worker that is ahead of another host and works is within its bound: it waits for nobody.
#[test]
fn a_host_holds_up_those_who_wait_for_it() {
    use hectare_dsm::{Job, agent::RemoteWorker};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};
    let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
    let agent = job.agent().unwrap();
    agent.set_worker(1, RemoteWorker::There).unwrap();
    let monitor = job.monitor().unwrap();
    let held_up = || {
        let snapshot = monitor.snapshot(0).unwrap();
        super::super::sample::holding_up(&snapshot).map(|worker| worker.rank).collect::<Vec<_>>()
    };
    let job = &job;
    let ((ahead, is_ahead), (go, may_go)) = (channel(), channel());
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || {
            let mut worker = job.worker().unwrap();
            worker.tick().unwrap();
            worker.sync().unwrap();
            ahead.send(()).unwrap();
            may_go.recv().unwrap();
            worker.wait_clocks(0).unwrap();
        });
        is_ahead.recv().unwrap();
        let while_it_works = held_up();
        go.send(()).unwrap();
        let since = Instant::now();
        while held_up() != [1] && since.elapsed() < Duration::from_secs(20) {}
        let while_it_waits = held_up();
        agent.set_clock(1, 1).unwrap();
        waits.join().unwrap();
        assert_eq!((while_it_works, while_it_waits, held_up()), (vec![], vec![1], vec![]));
    });
}
