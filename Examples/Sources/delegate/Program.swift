// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignURLSession
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `delegate HOME URL` prints the resource at a URL, with a URLSession whose delegate answers challenges from a home.
@main
struct Program {
    static func main() async {
        do {
            guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[2]) else {
                throw URLError(.badURL)
            }
            let controller = try ChallengeController(home: URL(filePath: CommandLine.arguments[1]))
            FileHandle.standardOutput.write(try await fetch(url, controller))
            await controller.storeOutcomes()
        } catch {
            FileHandle.standardError.write(Data("delegate: \(error.localizedDescription)\n".utf8))
            exit(1)
        }
    }

    static func fetch(_ url: URL, _ controller: ChallengeController) async throws -> Data {
        let delegate = AppDelegate(controller)
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: url).resume()
        for await error in delegate.ends {
            if let error { throw reason(error, url, controller) }
            break
        }
        return delegate.data
    }

    /// The check that failed, if a task was cancelled because its challenge is not answered.
    static func reason(_ error: URLError, _ url: URL, _ controller: ChallengeController) -> URLError {
        guard error.code == .cancelled, let host = url.host else { return error }
        let space = ProtectionSpace(
            scheme: url.scheme ?? "https", host: host, port: url.port, authenticationMethod: .basic)
        do {
            try controller.canHandle(space)
            return error
        } catch {
            return URLError(error, url: url)
        }
    }
}
