// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignProxy

@Suite struct ContainerNamesTests {
    private static let id = String(repeating: "0123456789abcdef", count: 4)
    private static let other = String(repeating: "f", count: 64)

    /// A folder with these files.
    private static func folder(_ files: [String: String]) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        for (path, text) in files {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return folder.path
    }

    @Test(arguments: ["overlay-containers/containers.json", "vfs-containers/volatile-containers.json"])
    func podmansFilesNameAContainer(file: String) throws {
        let text = """
            [{"id":"\(Self.other)","names":["db"],"layer":"x"},\
            {"id":"\(Self.id)","names":["web","front"],"metadata":"{}","flags":{"a":1}}]
            """
        let folder = try Self.folder([file: text])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(ContainerNames.names(of: Self.id, podman: ["/nowhere", folder], docker: "") == ["web", "front"])
        #expect(ContainerNames.names(of: String(repeating: "0", count: 64), podman: [folder], docker: "") == nil)
    }

    @Test func dockersFileNamesAContainer() throws {
        let folder = try Self.folder(["\(Self.id)/config.v2.json": #"{"ID":"x","Name":"/web","State":{}}"#])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(ContainerNames.names(of: Self.id, podman: [], docker: folder) == ["web"])
        #expect(ContainerNames.names(of: Self.other, podman: [], docker: folder) == nil)
    }

    @Test(arguments: ["", "[", "{}", "[1]", #"[{"id":7}]"#, #"[{"id":"ID"}]"#, #"[{"id":"ID","names":"web"}]"#])
    func aDamagedFileNamesNone(text: String) {
        let bytes = Array(text.replacingOccurrences(of: "ID", with: Self.id).utf8)
        #expect(ContainerNames.podmanNames(of: Self.id, in: bytes) == nil)
        #expect(ContainerNames.dockerName(in: bytes) == nil)
    }
}
