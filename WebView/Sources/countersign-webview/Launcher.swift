// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc
import WebViewProtocol

/// Starts this program again in a mount namespace of its own, in which the caller's certificates replace the system's.
///
/// WebKit has no other way to trust further authorities for every request: its network process reads the file whose
/// path is compiled into Debian's GnuTLS.
enum Launcher {
    static let trustStore = "/etc/ssl/certs/ca-certificates.crt"

    /// Does not return, except by an error.
    static func enterNamespace(bundle: String, options: Options) throws(StartFailure) -> Never {
        // bubblewrap would create a missing file on the system's disk.
        guard access(trustStore, R_OK) == 0 else {
            throw StartFailure(
                code: .noTrustStore, sentence: "there is no \(trustStore)",
                remedy: "install it: apt-get install ca-certificates")
        }
        var status = stat()
        guard stat(bundle, &status) == 0, status.st_mode & S_IFMT == S_IFREG, access(bundle, R_OK) == 0 else {
            throw StartFailure(
                code: .noCABundle, sentence: "cannot read the certificates in '\(bundle)'",
                remedy: "give --ca-bundle a file in PEM")
        }
        let program = URLOfProgram.path
        var arguments = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", bundle, trustStore, "--", program]
        arguments.append("--in-namespace")
        if options.permitsLoopbackHTTP { arguments.append("--loopback-http") }
        if options.isTest { arguments.append("--test") }
        let pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        execv(Installation.bubblewrap() ?? "/usr/bin/bwrap", pointers)
        throw StartFailure(
            code: .noBubblewrap, sentence: "cannot start bubblewrap: \(String(cString: strerror(errno)))",
            remedy: "install it: apt-get install bubblewrap")
    }

    /// bubblewrap waits for this process. A signal that ends bubblewrap is to end this process, too.
    static func endWithParent() {
        _ = csn_set_parent_death_signal(SIGKILL)
    }
}

private enum URLOfProgram {
    static var path: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        return count > 0
            ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : "/proc/self/exe"
    }
}
