//! Every fault of one host in its short form: the campaign of `faults` with one fault each, on a stage of its own.
use hectare_testing::skip;
use std::process::{Command, Stdio};

fn inject(number: u8) {
    let mut campaign = Command::new(env!("CARGO_BIN_EXE_faults"));
    campaign.args(["--short", "--seed", "1", "--only", &number.to_string()]);
    let output = campaign.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(3) {
        let line = said.lines().find(|line| line.contains("skipped")).unwrap_or_default();
        return skip(&format!("fault {number}"), line);
    }
    assert!(output.status.success(), "fault {number}:\n{said}{}", String::from_utf8_lossy(&output.stderr));
}

macro_rules! faults {
    ($($name:ident: $number:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                inject($number);
            }
        )*

        #[test]
        fn every_fault_is_a_test() {
            let output = Command::new(env!("CARGO_BIN_EXE_faults")).arg("--list").output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let listed: Vec<u8> =
                text.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
            assert_eq!(listed, [$($number),*]);
        }
    };
}

faults! {
    a_kill_in_mid_write: 1,
    a_kill_in_mid_log: 2,
    a_kill_at_a_step_of_a_round: 3,
    a_kill_while_attaching: 4,
    a_long_standstill: 5,
    a_short_standstill: 6,
    a_worker_that_never_calls_service: 7,
    a_panic_with_a_live_guard: 8,
    a_fork_without_exec: 9,
    a_reused_pid: 10,
    a_zombie: 11,
    one_of_many_killed_over_and_over: 12,
    a_killed_daemon: 13,
    a_restarted_daemon: 14,
    a_daemon_in_a_crash_loop: 15,
    two_daemons: 16,
    leftovers_of_a_killed_daemon: 17,
    an_out_of_memory_kill: 18,
    a_deletion_under_subscribers: 42,
    a_storm_of_subscriptions: 43,
    no_memory_and_no_room: 46,
    impossible_sizes: 47,
    full_tables: 48,
    limits_of_descriptors_and_locked_memory: 49,
    another_user: 50,
    logs_outside_of_an_area: 51,
    wrong_configurations: 52,
    another_layout_version: 53,
    a_scribbling_client: 54,
    words_changed_between_check_and_use: 55,
    a_truncating_client: 56,
    garbage_on_the_socket: 57,
    a_forgotten_log: 64,
}

#[test]
fn an_unknown_fault_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_faults")).args(["--only", "99"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no fault 99"));
}
