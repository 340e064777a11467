//! Mount system calls that the C library's bindings lack.

use std::io;

use crate::namespaces::syscall::called;

/// `struct mount_attr` of `linux/mount.h`, which the C library's bindings lack.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}
/// `MOUNT_ATTR_RDONLY` of the same header.
const READ_ONLY: u64 = 1;
/// `OPEN_TREE_CLONE` of the same header.
pub(super) const OPEN_TREE_CLONE: libc::c_int = 1;
/// `MOVE_MOUNT_F_EMPTY_PATH` and `MOVE_MOUNT_T_EMPTY_PATH` of the same header.
pub(super) const MOVE_MOUNT_EMPTY_PATHS: libc::c_uint = 0x44;

/// `MOVE_MOUNT_F_EMPTY_PATH` alone.
pub(super) const MOVE_MOUNT_FROM_EMPTY_PATH: libc::c_uint = 4;

/// Makes a tree of mounts read-only; with `depth` `AT_RECURSIVE` also the mounts below. Unlike a remount, this keeps the
/// flags that a user namespace may not remove.
#[expect(unsafe_code, reason = "see `View::apply`")]
pub(super) unsafe fn read_only(tree: libc::c_int, depth: libc::c_int) -> io::Result<()> {
    let attribute = MountAttr {
        set: READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: a local of the size that is passed, which the kernel copies.
    called(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree,
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | depth,
            &raw const attribute,
            size_of::<MountAttr>(),
        )
    })?;
    Ok(())
}
