//! Tool calls and their results.
use pleach_tree::SegmentId;
use rustc_hash::FxHashSet;

use crate::ledger::Ledger;

/// What of `after` has lost its other half in the change from `before`: results without their call, and calls without their result,
/// with what the same message called beside them and the results of that.
pub(super) fn broken(ledger: &Ledger, before: &[SegmentId], after: &[SegmentId]) -> FxHashSet<SegmentId> {
    let stays: FxHashSet<SegmentId> = after.iter().copied().collect();
    let mut lost: FxHashSet<&str> = FxHashSet::default();
    for &id in before.iter().filter(|id| !stays.contains(id)) {
        let Some(segment) = ledger.written(id) else { continue };
        lost.extend(segment.calls.iter().map(String::as_str));
        lost.extend(segment.result_of.as_deref());
    }
    let found = |id: &SegmentId| ledger.written(*id).map(|segment| (*id, segment));
    // A placeholder that came for a result answers the call as well.
    let answered: FxHashSet<&str> =
        after.iter().filter_map(found).filter_map(|(_, segment)| segment.result_of.as_deref()).collect();
    let called: FxHashSet<&str> =
        after.iter().filter_map(found).flat_map(|(_, segment)| segment.calls.iter().map(String::as_str)).collect();
    lost.retain(|call| !(answered.contains(call) && called.contains(call)));
    if lost.is_empty() {
        return FxHashSet::default();
    }
    let mut broken = FxHashSet::default();
    let message =
        |id: SegmentId| ledger.written(id).and_then(|segment| segment.source.as_ref()).map(|source| source.key.as_str());
    loop {
        let count = broken.len();
        let torn: FxHashSet<&str> = after
            .iter()
            .filter_map(found)
            .filter(|(_, segment)| segment.calls.iter().any(|call| lost.contains(call.as_str())))
            .filter_map(|(id, _)| message(id))
            .collect();
        for (id, segment) in after.iter().filter_map(found) {
            let same_message = !segment.calls.is_empty() && message(id).is_some_and(|key| torn.contains(key));
            let half = segment.result_of.as_deref().is_some_and(|call| lost.contains(call));
            if same_message || half {
                broken.insert(id);
                lost.extend(segment.calls.iter().map(String::as_str));
            }
        }
        if broken.len() == count {
            return broken;
        }
    }
}
