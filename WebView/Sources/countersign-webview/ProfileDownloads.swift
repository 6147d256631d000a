// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import FoundationEssentials
import WebViewProtocol

/// Delivers the configuration profiles that pages offer, one at a time. They pass through a file in the caller's
/// folder, because WebKit writes downloads to files only.
final class ProfileDownloads {
    /// The owner, which the program keeps until the process ends.
    private unowned let window: SignInWindow
    private var count = 0
    /// The address of the response that is a profile, until its download starts.
    private var expected: String?
    /// The download in progress, and its file.
    private var current: (download: OpaquePointer, url: String, file: String)?

    init(of window: SignInWindow) {
        self.window = window
    }

    /// Whether the page's response is a profile to download.
    func expects(_ response: OpaquePointer?) -> Bool {
        guard window.signIn.profileFolder != nil, expected == nil, current == nil, count < Limits.profiles,
            let text = webkit_uri_response_get_uri(response).map({ String(cString: $0) }),
            case .allow = window.signIn.policy.decide(text)
        else { return false }
        let type = webkit_uri_response_get_mime_type(response).map { String(cString: $0).lowercased() } ?? ""
        let path = text.prefix { $0 != "?" && $0 != "#" }.lowercased()
        guard type == "application/x-apple-aspen-config" || path.hasSuffix(".mobileconfig"),
            webkit_uri_response_get_status_code(response) == 200,
            webkit_uri_response_get_content_length(response) <= Limits.profileBytes
        else { return false }
        expected = text
        return true
    }

    /// Accepts the download if it is the expected one.
    func starts(_ download: OpaquePointer?) -> Bool {
        guard let download, let url = expected, let folder = window.signIn.profileFolder else { return false }
        expected = nil
        count += 1
        let file = "\(folder)/profile-\(count)"
        g_object_ref(gpointer(download))
        current = (download, url, file)
        webkit_download_set_allow_overwrite(download, 0)
        webkit_download_set_destination(download, file)
        connect(gpointer(download), "received-data", to: self, Self.received)
        connect(gpointer(download), "failed", to: self, Self.failed)
        connect(gpointer(download), "finished", to: self, Self.finished)
        return true
    }

    private typealias Download = OpaquePointer?

    private static let received: @convention(c) (Download, guint64, gpointer?) -> Void = { download, _, data in
        guard webkit_download_get_received_data_length(download) > UInt64(Limits.profileBytes) else { return }
        webkit_download_cancel(download)
    }

    /// `finished` follows.
    private static let failed: @convention(c) (Download, gpointer?, gpointer?) -> Void = { _, _, data in
        ProfileDownloads.from(data).hasFailed = true
    }

    private static let finished: @convention(c) (Download, gpointer?) -> Void = { _, data in
        ProfileDownloads.from(data).end()
    }

    private var hasFailed = false

    private func end() {
        guard let (download, url, file) = current else { return }
        defer {
            current = nil
            hasFailed = false
            // In the main loop's next turn: WebKit still uses it.
            after(.zero) { g_object_unref(gpointer(download)) }
        }
        let content = hasFailed ? nil : FileManager.default.contents(atPath: file)
        try? FileManager.default.removeItem(atPath: file)
        guard let content, content.count <= Limits.profileBytes else { return window.refused(url, .download) }
        window.program.report(
            .profile(url: PageURL(url)?.withoutSecrets ?? "", content: content.base64EncodedString()))
    }

    private static func from(_ data: gpointer?) -> ProfileDownloads {
        // GTK passes the data of the signal's connection.
        guard let data else { preconditionFailure("a signal without its data") }
        return Unmanaged<ProfileDownloads>.fromOpaque(data).takeUnretainedValue()
    }
}
