use std::{
    marker::PhantomData,
    ops::Range,
    sync::{Mutex, PoisonError},
};

/// Rows that several threads write at once, each its own.
pub(super) struct SharedRows<'a, E> {
    at: *mut E,
    rows: usize,
    width: usize,
    owner: PhantomData<&'a mut [E]>,
}

// SAFETY: access goes through `rows_mut`, whose callers vouch that no two hold the same row.
#[allow(unsafe_code, reason = "threads write disjoint rows of one buffer")]
unsafe impl<E: Send> Sync for SharedRows<'_, E> {}

impl<'a, E> SharedRows<'a, E> {
    /// The rows of `entries`, `width` entries each.
    pub(super) fn new(entries: &'a mut [E], width: usize) -> Self {
        Self { at: entries.as_mut_ptr(), rows: entries.len() / width, width, owner: PhantomData }
    }

    /// The entries of some rows.
    ///
    /// # Safety
    /// No other reference to one of these rows may be alive.
    ///
    /// # Panics
    /// If there are not that many rows.
    #[allow(
        unsafe_code,
        clippy::mut_from_ref,
        reason = "threads write disjoint rows of one buffer"
    )]
    pub(super) unsafe fn rows_mut(&self, rows: Range<usize>) -> &mut [E] {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        // SAFETY: the rows lie inside the buffer, which is borrowed for `'a`, and the caller
        // vouches that they are its own.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.at.add(rows.start * self.width),
                rows.len() * self.width,
            )
        }
    }
}

/// Buffers that workers take in turn, so that as many exist as work at a time.
pub(super) struct Pool<T, F> {
    free: Mutex<Vec<T>>,
    make: F,
}

impl<T, F: Fn() -> T> Pool<T, F> {
    /// An empty pool, filled by `make` on demand.
    pub(super) fn new(make: F) -> Self {
        Self { free: Mutex::default(), make }
    }

    /// Lends a buffer to `work`.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = free().pop();
        let mut item = taken.unwrap_or_else(&self.make);
        let result = work(&mut item);
        free().push(item);
        result
    }
}
