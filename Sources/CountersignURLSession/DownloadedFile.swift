// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOPosix

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A new file in the temporary folder, which only this user can read. It is written on a thread that may wait for the
/// disk.
struct DownloadedFile: Sendable {
    let url: URL
    private let handle: FileHandle

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString).tmp")
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.error(.cannotCreateFile, url, "\(String(cString: strerror(errno)))") }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func write(_ data: Data) async throws {
        do {
            try await NIOThreadPool.singleton.runIfActive { try handle.write(contentsOf: data) }
        } catch {
            throw Self.error(.cannotWriteToFile, url, "\(error)")
        }
    }

    func close() async throws {
        do {
            try await NIOThreadPool.singleton.runIfActive { try handle.close() }
        } catch {
            throw Self.error(.cannotWriteToFile, url, "\(error)")
        }
    }

    func remove() {
        try? handle.close()
        try? FileManager.default.removeItem(at: url)
    }

    private static func error(_ code: URLError.Code, _ url: URL, _ reason: String) -> URLError {
        URLError(code, userInfo: [NSLocalizedDescriptionKey: "cannot write \"\(url.path)\": \(reason)"])
    }
}
