//! The report on each loop: its times by numbers of hosts, what bounds them, and up to how many hosts pay.
use crate::cli::output::table_text;
use hectare_dependence::hosts::{Bound, Forecast, Link, LoopRecord, PassesRecord, PlanRequest};
use serde::Serialize;
use std::fmt;

/// More hosts pay while each next number of them makes a pass faster by this factor.
const PAYS: f64 = 1.05;

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    workers_per_host: usize,
    /// The links, as they were given or measured.
    link: Option<Link>,
    /// On how many hosts the program ran.
    measured_hosts: usize,
    /// How many workers ran it.
    measured_workers: usize,
    loops: Vec<LoopReport>,
}

/// Of one loop.
#[derive(Debug, Serialize)]
struct LoopReport {
    #[serde(flatten)]
    record: LoopRecord,
    /// The bottleneck of each forecast.
    bounds: Vec<Bound>,
    /// The number of hosts beyond which more do not pay.
    pays_up_to: usize,
}

/// The number of hosts after which the next does not make a pass faster.
fn pays_up_to(forecasts: &[Forecast]) -> usize {
    let faster = |pair: &[Forecast]| pair[0].time.total_ns() > PAYS * pair[1].time.total_ns();
    let stops =
        forecasts.windows(2).position(|pair| !faster(pair)).unwrap_or(forecasts.len().saturating_sub(1));
    forecasts.get(stops).map_or(1, |forecast| forecast.hosts)
}

impl Report {
    pub(super) fn of(request: &PlanRequest, record: PassesRecord) -> Report {
        let loops = record.loops.into_iter().filter(|one| !one.forecasts.is_empty());
        let loops = loops.map(|record| LoopReport {
            bounds: record.forecasts.iter().map(|forecast| forecast.time.bound()).collect(),
            pays_up_to: pays_up_to(&record.forecasts),
            record,
        });
        Report {
            workers_per_host: request.workers_per_host,
            link: record.link,
            measured_hosts: record.hosts,
            measured_workers: record.workers,
            loops: loops.collect(),
        }
    }
}

fn in_words(bound: Bound) -> &'static str {
    match bound {
        Bound::Compute => "compute",
        Bound::Balance => "balance",
        Bound::Steps => "steps",
        Bound::Link => "link",
    }
}

fn millis(nanoseconds: f64) -> String {
    format!("{:.3}", nanoseconds / 1e6)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { workers_per_host, measured_hosts, measured_workers, .. } = self;
        if let Some(link) = self.link {
            writeln!(
                f,
                "Links: a barrier {:.0} us, a hand-over {:.0} us, {:.2} Gbit/s from each host. Workers per host: {workers_per_host}.",
                link.barrier_ns / 1e3,
                link.hand_over_ns / 1e3,
                link.bytes_per_ns * 8.0
            )?;
        }
        for one in &self.loops {
            let LoopRecord { name, iterations, passes, measured_ns, relaxed, forecasts, .. } = &one.record;
            writeln!(
                f,
                "\nloop {name}: {iterations:.0} iterations; measured: {} ms a pass ({passes} passes; hosts: {measured_hosts}, workers: \
                 {measured_workers})",
                millis(*measured_ns)
            )?;
            let head = [
                "HOSTS",
                "WORKERS",
                "PASS/ms",
                "SPEEDUP",
                "COMPUTE/ms",
                "BALANCE/ms",
                "STEPS/ms",
                "LINK/ms",
                "STEPS",
                "SENT/kB",
                "BOUND",
                "SCHEDULE",
            ];
            let first = forecasts.first().map_or(0.0, |forecast| forecast.time.total_ns());
            let line = |(forecast, bound): (&Forecast, &Bound)| {
                let time = forecast.time;
                [
                    forecast.hosts.to_string(),
                    forecast.workers.to_string(),
                    millis(time.total_ns()),
                    format!("{:.2}", first / time.total_ns()),
                    millis(time.compute_ns),
                    millis(time.balance_ns),
                    millis(time.steps_ns),
                    millis(time.link_ns),
                    forecast.steps.to_string(),
                    format!("{:.0}", forecast.sent_bytes / 1e3),
                    in_words(*bound).into(),
                    forecast.schedule.clone(),
                ]
            };
            f.write_str(&table_text(head, forecasts.iter().zip(&one.bounds).map(line).collect()))?;
            let percent = (PAYS - 1.0) * 100.0;
            match forecasts.iter().find(|forecast| forecast.hosts > one.pays_up_to) {
                Some(next) => writeln!(
                    f,
                    "The most hosts that pay off: {}. With {}, a pass would not be {percent:.0} % faster.",
                    one.pays_up_to, next.hosts
                )?,
                None => writeln!(
                    f,
                    "All of these numbers of hosts pay off: with each, a pass is at least {percent:.0} % faster than with the one before."
                )?,
            }
            if !relaxed.is_empty() {
                writeln!(
                    f,
                    "The loop gives up dependences of {}: what clocks send between hosts is not in these times.",
                    relaxed.join(", ")
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dependence::hosts::PassTime;

    fn forecast(hosts: usize, compute_ns: f64, link_ns: f64) -> Forecast {
        let time = PassTime { compute_ns, link_ns, ..PassTime::default() };
        let schedule = "rotation".to_owned();
        Forecast {
            hosts,
            workers: hosts,
            schedule,
            steps: 1,
            sent_bytes: 0.0,
            handed_bytes: 0.0,
            imbalance: 1.0,
            time,
        }
    }

    #[test]
    fn more_hosts_pay_until_the_next_are_hardly_faster() {
        let of = |times: &[(usize, f64)]| {
            pays_up_to(&times.iter().map(|(hosts, time)| forecast(*hosts, *time, 0.0)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[(1, 100.0), (2, 60.0), (4, 40.0), (8, 39.0), (16, 10.0)]), 4);
        assert_eq!(of(&[(1, 100.0), (2, 120.0)]), 1);
        assert_eq!(of(&[(1, 100.0), (2, 60.0)]), 2);
        assert_eq!(of(&[(4, 100.0)]), 4);
    }

    #[test]
    fn a_report_says_times_bounds_and_what_is_left_out() {
        let record = LoopRecord {
            name: "src/main.rs:1:1".into(),
            iterations: 1000.0,
            passes: 3,
            compute_ns: vec![1e6],
            measured_ns: 1.1e6,
            relaxed: vec!["sums".into()],
            forecasts: vec![forecast(1, 1e6, 0.0), forecast(2, 5e5, 6e5)],
        };
        let link = Link::of_network(1e3, 1.25);
        let request =
            PlanRequest { record: String::new(), hosts: vec![1, 2], workers_per_host: 1, link: Some(link) };
        let record = PassesRecord { version: 1, workers: 1, hosts: 1, link: Some(link), loops: vec![record] };
        let report = Report::of(&request, record);
        let text = report.to_string();
        for part in [
            "8.70 Gbit/s",
            "1.100 ms a pass",
            "0.91",
            "compute",
            "link",
            "pay off: 1. With 2, a pass would not be 5 %",
            "of sums",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let said = serde_json::to_value(&report).unwrap();
        assert_eq!(said["loops"][0]["bounds"][1], "link");
        assert_eq!(said["loops"][0]["pays_up_to"], 1);
        assert_eq!(said["loops"][0]["forecasts"][1]["hosts"], 2);
    }
}
