//! What memory the machine has free.

/// Whether an estimate, which is right to within a third, fits into what is free.
pub(crate) fn fits(needed: u64, available: u64) -> bool {
    needed.saturating_add(needed / 3) <= available
}

/// Bytes of memory that the machine has free.
pub(crate) fn available() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    // What a control group counts as used holds the page cache, which is given up on demand.
    let group = system
        .cgroup_limits()
        .map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    group.min(system.available_memory())
}
