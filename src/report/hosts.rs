//! Work of each machine on a stage.

use serde::{Deserialize, Serialize};

use super::StageReport;
use super::format::time;
use crate::cx::HostCounts;

/// Part of a stage's work that another machine did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Name or address of the machine, as reported by its workers.
    pub host: String,
    /// Elements that left the stage on this machine.
    pub elements: u64,
    /// Seconds of the stage's own work on this machine, on all threads together.
    pub self_s: f64,
    /// Microseconds of the stage's own work per element.
    pub self_us_per_element: f64,
}

/// Returns the parts of stage `id` on all machines that yielded its elements.
pub(super) fn of_stage(hosts: &[(String, Vec<HostCounts>)], id: usize) -> Vec<HostReport> {
    let parts = hosts.iter().filter_map(|(host, stages)| {
        let HostCounts { elements, self_ns } = *stages.get(id)?;
        let self_s = self_ns as f64 / 1e9;
        let self_us_per_element = self_s * 1e6 / elements.max(1) as f64;
        (elements > 0).then(|| HostReport { host: host.clone(), elements, self_s, self_us_per_element })
    });
    parts.collect()
}

/// Returns a line on the slowest and the fastest machine of a stage, if several machines worked on it.
pub(super) fn line(stage: &StageReport) -> Option<String> {
    let by_time = |a: &&HostReport, b: &&HostReport| a.self_us_per_element.total_cmp(&b.self_us_per_element);
    let worked = || stage.hosts.iter().filter(|host| host.self_s > 0.0);
    let (slowest, fastest) = (worked().max_by(by_time)?, worked().min_by(by_time)?);
    let told = |host: &HostReport| format!("@ {}: {} an element", host.host, time(host.self_us_per_element));
    let count = worked().count();
    (count > 1).then(|| {
        format!("{} {}, the slowest of {count} machines; {}, the fastest", stage.name, told(slowest), told(fastest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_part_of_a_stage() {
        let counts = |elements, self_ns| HostCounts { elements, self_ns };
        let hosts = [
            ("a".to_owned(), vec![counts(0, 0), counts(10, 20_000_000)]),
            ("b".to_owned(), vec![counts(5, 0), counts(40, 20_000_000)]),
        ];
        assert_eq!(of_stage(&hosts, 0).len(), 1);
        let parts = of_stage(&hosts, 1);
        let told: Vec<_> = parts.iter().map(|part| (&*part.host, part.elements, part.self_us_per_element)).collect();
        assert_eq!(told, [("a", 10, 2000.0), ("b", 40, 500.0)]);
        assert!(of_stage(&hosts, 2).is_empty());
    }
}
