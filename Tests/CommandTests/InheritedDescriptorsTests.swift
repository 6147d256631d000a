// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// Which descriptors a child gets.
@Suite(.waiting, .serialized) struct InheritedDescriptorsTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The numbers from 3 on that are open in a child, apart from that of the folder that it lists. `between` runs
    /// after the child's descriptors were chosen.
    private func open(_ inherited: InheritedDescriptors, between: () -> Void = {}) throws -> [Int32] {
        let output = folder.file("output")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        inherited.restrict(&actions)
        between()
        // The shell expands the pattern itself, and opens no folder for longer than that.
        let words = ["/bin/sh", "-c", "for each in /proc/$$/fd/*; do readlink $each; done; cd /proc/$$/fd; echo *"]
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var child: pid_t = 0
        try #require(posix_spawn(&child, words[0], &actions, nil, &arguments, environ) == 0)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let last = TextFile.lines(output).last ?? ""
        return last.split(separator: " ").compactMap { Int32($0) }.filter { $0 > 2 }
    }

    /// A descriptor without close-on-exec, as SwiftNIO's are, with a number that no other test has.
    private func occupy(_ number: Int32? = nil) throws -> Int32 {
        let descriptor = Foundation.open("/dev/null", O_RDONLY)
        defer { close(descriptor) }
        let copy = number.map { dup2(descriptor, $0) } ?? fcntl(descriptor, F_DUPFD, Self.lowest)
        return try #require(copy >= 0 ? copy : nil)
    }

    private static let lowest: Int32 = 700

    @Test func whatWasInheritedIsPassedOn() throws {
        let number = try occupy()
        defer { close(number) }
        #expect(try open(InheritedDescriptors()).contains(number))
    }

    @Test func anotherFileUnderTheSameNumberIsNot() throws {
        let file = Foundation.open(try folder.write("file", "x"), O_RDONLY)
        let number = fcntl(file, F_DUPFD, Self.lowest)
        close(file)
        let inherited = InheritedDescriptors()
        #expect(try open(inherited).contains(number))
        #expect(try occupy(number) == number)
        defer { close(number) }
        #expect(try !open(inherited).contains(number))
    }

    /// This process has opened it, while the list was made.
    @Test func whatIsClosedByExecWasNotInherited() throws {
        let number = try occupy()
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        let inherited = InheritedDescriptors()
        _ = fcntl(number, F_SETFD, 0)
        defer { close(number) }
        #expect(try !open(inherited).contains(number))
    }

    @Test func whatIsOpenedMeanwhileIsNot() throws {
        let inherited = InheritedDescriptors()
        var numbers: [Int32] = []
        defer { for number in numbers { close(number) } }
        let found = try open(inherited) { for _ in 0..<100 { numbers.append((try? occupy()) ?? -1) } }
        #expect(numbers.allSatisfy { $0 >= Self.lowest } && Set(found).isDisjoint(with: numbers), "\(found)")
    }
}
