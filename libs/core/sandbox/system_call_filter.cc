#include "core/sandbox/system_call_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/sandbox/sanitized.h"

namespace hark {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// From 424 on a number means the same on every architecture, and old headers lack the names.
constexpr uint32_t kClone3 = 435;
constexpr uint32_t kX32 = 0x40000000;  // x86-64: a second table of all calls

// A list of what is refused, not of what is allowed: a new C library, OpenMP or a sanitizer calls
// what the old one did not, and the decoder would end with it. Files are Landlock's.
constexpr uint32_t kRefused[] = {
    // The network, and descriptors of other processes.
    __NR_socket,
    __NR_socketpair,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_sendto,
    __NR_sendmsg,
    __NR_sendmmsg,
    __NR_recvmsg,
    __NR_recvmmsg,
    // Programs, other processes and their memory.
    __NR_execve,
    __NR_execveat,
    __NR_kill,
    __NR_tkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
    424 /* pidfd_send_signal */,
    434 /* pidfd_open */,
    438 /* pidfd_getfd */,
    440 /* process_madvise */,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_setpriority,
    __NR_ioprio_set,
    __NR_sched_setparam,
    __NR_sched_setscheduler,
    __NR_sched_setattr,
    __NR_migrate_pages,
    __NR_move_pages,
    // Files by other ways than open, which older versions of Landlock do not see.
    __NR_truncate,
    __NR_fchmod,
    __NR_fchmodat,
    452 /* fchmodat2 */,
    __NR_fchown,
    __NR_fchownat,
    __NR_setxattr,
    __NR_lsetxattr,
    __NR_fsetxattr,
    __NR_removexattr,
    __NR_lremovexattr,
    __NR_fremovexattr,
    __NR_utimensat,
    __NR_linkat,
    __NR_symlinkat,
    __NR_unlinkat,
    __NR_renameat2,
    __NR_mkdirat,
    __NR_mknodat,
    __NR_open_by_handle_at,
    __NR_fanotify_init,
    __NR_ioctl,
    // Name spaces and mounts.
    __NR_unshare,
    __NR_setns,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    431 /* fsconfig */,
    432 /* fsmount */,
    433 /* fspick */,
    442 /* mount_setattr */,
    467 /* open_tree_attr */,
    // Parts of the kernel with a history of faults, and those of its owner.
    425 /* io_uring_setup */,
    426 /* io_uring_enter */,
    427 /* io_uring_register */,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_personality,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_quotactl,
    __NR_vhangup,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_clock_adjtime,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_syslog,
#ifdef __NR_renameat
    __NR_renameat,
#endif
#ifdef __x86_64__
    __NR_fork,
    __NR_vfork,
    __NR_chmod,
    __NR_chown,
    __NR_lchown,
    __NR_utime,
    __NR_utimes,
    __NR_futimesat,
    __NR_link,
    __NR_symlink,
    __NR_unlink,
    __NR_rename,
    __NR_mkdir,
    __NR_rmdir,
    __NR_mknod,
    __NR_modify_ldt,
    __NR_ioperm,
    __NR_iopl,
#endif
};

// Their first argument is a process: this one, or 0. sched_setaffinity is not in the list, as its
// argument is a thread: libgomp with OMP_PROC_BIND binds those that it starts.
constexpr uint32_t kOfOwnProcess[] = {__NR_tgkill, __NR_prlimit64};

class FilterProgram {
  public:
    FilterProgram() {
        load(offsetof(seccomp_data, arch));
        unless_equal_return(kArchitecture, SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
        add({BPF_JMP | BPF_JGE | BPF_K, 0, 1, kX32});
        add({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
#endif
        for (const uint32_t call : kRefused) if_equal_return(call, refusal(EPERM));
        for (const uint32_t call : kOfOwnProcess) refuse_others(call);
        if (!kSanitized) {
            if_equal_return(__NR_ptrace, refusal(EPERM));
            // Its flags are in memory, which a filter does not see: the C library then takes clone.
            if_equal_return(kClone3, refusal(ENOSYS));
            // Threads are clones too.
            add({BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_clone});
            load(offsetof(seccomp_data, args));
            add({BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD});
            add({BPF_RET | BPF_K, 0, 0, refusal(EPERM)});
        }
        add({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
    }

    sock_fprog program() {
        return {static_cast<unsigned short>(instructions_.size()), instructions_.data()};
    }

  private:
    static uint32_t refusal(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
    void add(sock_filter instruction) { instructions_.push_back(instruction); }
    void refuse_others(uint32_t call) {
        add({BPF_JMP | BPF_JEQ | BPF_K, 0, 5, call});
        load(offsetof(seccomp_data, args));  // the lower half: little-endian
        add({BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 0});
        add({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, static_cast<uint32_t>(::getpid())});
        add({BPF_RET | BPF_K, 0, 0, refusal(EPERM)});
        add({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
    }
    void load(size_t offset) {
        add({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)});
    }
    void if_equal_return(uint32_t value, uint32_t result) {
        add({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value});
        add({BPF_RET | BPF_K, 0, 0, result});
    }
    void unless_equal_return(uint32_t value, uint32_t result) {
        add({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value});
        add({BPF_RET | BPF_K, 0, 0, result});
    }

    std::vector<sock_filter> instructions_;
};

}  // namespace

std::string filter_system_calls() {
    if (kArchitecture == 0) return "no filter of system calls is written for this processor";
    FilterProgram filter;
    const sock_fprog program = filter.program();
    if (::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
        return "";
    return concat("seccomp cannot filter system calls: ", std::strerror(errno),
                  ", so the network and programs are open to the decoders");
}

}  // namespace hark
