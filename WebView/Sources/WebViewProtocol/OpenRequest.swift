// SPDX-License-Identifier: Apache-2.0

/// Everything that a sign-in needs. Absent members of the JSON object are nil, empty or false; `timeLimitSeconds` and
/// the first three are required.
package struct OpenRequest: Equatable, Sendable {
    package var url: String
    package var redirectURIs: [String]
    /// `https://host[:port]`.
    package var allowedOrigins: [String]
    package var timeLimit: Duration
    /// Fields of the first request.
    package var headers: [String: String] = [:]
    /// Stored before the first load.
    package var cookies: [Cookie] = []
    package var captureCookies: CookieSelection?
    /// The session's cookies are reported as `session` at the end, unless the sign-in is cancelled.
    package var reportsSession = false
    /// `http://[user:password@]host:port` on loopback. All requests go through it. Without it, the connections are
    /// direct, regardless of the system's settings.
    package var proxy: String?
    /// An absolute path. The session's persistent cookies and storage are kept there; without it, nowhere.
    package var dataFolder: String?
    package var title: String?
    package var userAgent: String?
    /// Pages may post messages.
    package var pageMessages: PageMessageRules?
    /// URLs with a scheme of device enrolment are reported as `specialURL`.
    package var specialURLs = false
    /// Every request says that this device has a certificate, which servers then ask for with `deviceChallenge`.
    package var announcesDevice = false
    /// An absolute path of a folder through which configuration profiles are downloaded and reported as `profile`; if
    /// absent, they are refused. The caller removes it.
    package var profileFolder: String?

    package init(url: String, redirectURIs: [String], allowedOrigins: [String], timeLimit: Duration) {
        self.url = url
        self.redirectURIs = redirectURIs
        self.allowedOrigins = allowedOrigins
        self.timeLimit = timeLimit
    }
}

extension OpenRequest: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case type, url, redirectURIs, allowedOrigins, timeLimitSeconds, headers, cookies, captureCookies, proxy
        case reportsSession, dataFolder, title, userAgent, pageMessages, specialURLs, profileFolder
        case announcesDevice
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(Key.self)
        url = try members.decode(String.self, forKey: .url)
        redirectURIs = try members.decode([String].self, forKey: .redirectURIs)
        allowedOrigins = try members.decode([String].self, forKey: .allowedOrigins)
        timeLimit = .seconds(try members.decode(Int32.self, forKey: .timeLimitSeconds))
        headers = try members.decodeIfPresent([String: String].self, forKey: .headers) ?? [:]
        cookies = try members.decodeIfPresent([Cookie].self, forKey: .cookies) ?? []
        captureCookies = try members.decodeIfPresent(CookieSelection.self, forKey: .captureCookies)
        reportsSession = try members.decodeIfPresent(Bool.self, forKey: .reportsSession) ?? false
        proxy = try members.decodeIfPresent(String.self, forKey: .proxy)
        dataFolder = try members.decodeIfPresent(String.self, forKey: .dataFolder)
        title = try members.decodeIfPresent(String.self, forKey: .title)
        userAgent = try members.decodeIfPresent(String.self, forKey: .userAgent)
        pageMessages = try members.decodeIfPresent(PageMessageRules.self, forKey: .pageMessages)
        specialURLs = try members.decodeIfPresent(Bool.self, forKey: .specialURLs) ?? false
        announcesDevice = try members.decodeIfPresent(Bool.self, forKey: .announcesDevice) ?? false
        profileFolder = try members.decodeIfPresent(String.self, forKey: .profileFolder)
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        try members.encode(url, forKey: .url)
        try members.encode(redirectURIs, forKey: .redirectURIs)
        try members.encode(allowedOrigins, forKey: .allowedOrigins)
        try members.encode(timeLimit.components.seconds, forKey: .timeLimitSeconds)
        if !headers.isEmpty { try members.encode(headers, forKey: .headers) }
        if !cookies.isEmpty { try members.encode(cookies, forKey: .cookies) }
        try members.encodeIfPresent(captureCookies, forKey: .captureCookies)
        if reportsSession { try members.encode(true, forKey: .reportsSession) }
        try members.encodeIfPresent(proxy, forKey: .proxy)
        try members.encodeIfPresent(dataFolder, forKey: .dataFolder)
        try members.encodeIfPresent(title, forKey: .title)
        try members.encodeIfPresent(userAgent, forKey: .userAgent)
        try members.encodeIfPresent(pageMessages, forKey: .pageMessages)
        if specialURLs { try members.encode(true, forKey: .specialURLs) }
        if announcesDevice { try members.encode(true, forKey: .announcesDevice) }
        try members.encodeIfPresent(profileFolder, forKey: .profileFolder)
    }
}
