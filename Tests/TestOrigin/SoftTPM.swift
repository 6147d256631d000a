// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A TPM 2.0 in software (swtpm), for the programs of tpm2-tools.
package final class SoftTPM: Sendable {
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("tpm")
        let socket = folder.file("socket")
        process = try ChildProcess(
            Tool.path("swtpm"),
            [
                "socket", "--tpm2", "--tpmstate", "dir=\(folder.path)", "--server", "type=unixio,path=\(socket)",
                "--ctrl", "type=unixio,path=\(socket).ctrl", "--flags", "not-need-init,startup-clear",
            ], capture: folder.file("swtpm"))
        let isThere: Bool? = poll {
            FileManager.default.fileExists(atPath: socket) && FileManager.default.fileExists(atPath: "\(socket).ctrl")
                ? true : nil
        }
        guard isThere == true else { throw HarnessError("swtpm did not start: \(process.errorOutput)") }
    }

    /// What makes the programs use it.
    package var environment: [String: String] {
        ChildProcess.environment(adding: ["TPM2TOOLS_TCTI": "swtpm:path=\(folder.file("socket"))"])
    }
}
