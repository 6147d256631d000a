// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import FoundationEssentials
import Glibc

/// Why there can be no sandbox on this machine.
enum SandboxFailure {
    /// What the kernel says about user namespaces; nil for a setting that it does not have.
    struct KernelSettings {
        /// user.max_user_namespaces
        var most: Int?
        /// kernel.unprivileged_userns_clone, a setting of Debian's kernels.
        var permitsUnprivileged: Int?
        /// kernel.apparmor_restrict_unprivileged_userns, a setting of Ubuntu's kernels.
        var isRestrictedByAppArmor: Int?

        static var current: KernelSettings {
            func value(_ name: String) -> Int? {
                (try? HomeFile(path: "/proc/sys/\(name)").readIfThere(upTo: 64))
                    .flatMap { Int(String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace }) }
            }
            return KernelSettings(
                most: value("user/max_user_namespaces"),
                permitsUnprivileged: value("kernel/unprivileged_userns_clone"),
                isRestrictedByAppArmor: value("kernel/apparmor_restrict_unprivileged_userns"))
        }

        /// The cause and the remedy. bwrap has written its own reason before.
        var diagnostic: Diagnostic {
            if most == 0 {
                return Self.forbidden("user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=10000")
            }
            if permitsUnprivileged == 0 {
                return Self.forbidden(
                    "kernel.unprivileged_userns_clone is 0", "sudo sysctl kernel.unprivileged_userns_clone=1")
            }
            if isRestrictedByAppArmor == 1 {
                return Diagnostic(
                    "bwrap has not made the sandbox: AppArmor restricts user namespaces",
                    hint: "install a profile for /usr/bin/bwrap that permits `userns` (the package apparmor-profiles)")
            }
            return Diagnostic(
                "bwrap has not made the sandbox, for the reason above",
                hint: "in a container, the runtime must permit user namespaces and mounts")
        }

        private static func forbidden(_ setting: String, _ remedy: String) -> Diagnostic {
            Diagnostic("bwrap has not made the sandbox: user namespaces are forbidden (\(setting))", hint: remedy)
        }
    }

    static var diagnostic: Diagnostic { KernelSettings.current.diagnostic }

    /// bwrap in `path`, the value of PATH. Throws ``CountersignError`` if it is not there.
    static func bwrap(in path: String) throws(CountersignError) -> String {
        // A relative entry would run a program of the working folder.
        let folders = path.split(separator: ":").filter { $0.hasPrefix("/") }
        for folder in folders where access("\(folder)/bwrap", X_OK) == 0 { return "\(folder)/bwrap" }
        throw CountersignError(
            .environment, "a sandbox needs bwrap, which is not installed", hint: "sudo apt install bubblewrap")
    }
}
