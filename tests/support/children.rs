//! Child processes of this one.

/// Their pids and states (`Z` for a zombie).
fn all() -> impl Iterator<Item = (u32, char)> {
    let me = std::process::id().to_string();
    let pids =
        std::fs::read_dir("/proc").expect("Linux").flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter_map(move |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        (fields.next() == Some(&me)).then_some((pid, state))
    })
}

/// All of them, zombies too.
#[allow(dead_code, reason = "not every test that includes this needs it")]
pub(crate) fn children() -> Vec<u32> {
    all().map(|(pid, _)| pid).collect()
}

/// Those that run.
#[allow(dead_code, reason = "not every test that includes this needs it")]
pub(crate) fn living_children() -> Vec<u32> {
    all().filter(|(_, state)| *state != 'Z').map(|(pid, _)| pid).collect()
}
