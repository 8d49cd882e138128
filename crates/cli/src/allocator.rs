//! The allocator of this program, which keeps what is freed.
//!
//! A training step frees and takes the same large arrays over and over. An allocator that hands
//! them back to the system fetches them again page by page, which takes as long as half of the
//! step.
use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h: milliseconds until freed memory goes back to the system.
const PURGE_DELAY: c_int = 15;

/// The delay that means never.
const NEVER: c_long = -1;

/// Keeps freed memory until the program ends, unless the environment says otherwise
/// (`MIMALLOC_PURGE_DELAY`).
#[allow(unsafe_code, reason = "options of the allocator are set through its C interface")]
pub(crate) fn keep_freed_memory() {
    // SAFETY: the option exists in every version of mimalloc that the manifest admits, and any
    // integer is a valid delay.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, NEVER) };
}

#[cfg(test)]
mod tests {
    use super::{NEVER, PURGE_DELAY, keep_freed_memory};

    #[test]
    #[allow(unsafe_code, reason = "options of the allocator are read through its C interface")]
    fn freed_memory_is_kept_unless_the_environment_says_otherwise() {
        // SAFETY: the option exists.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert!(matches!(delay(), 10 | 1000), "the option is not the delay: {}", delay());
        keep_freed_memory();
        assert_eq!(delay(), NEVER);
    }
}
