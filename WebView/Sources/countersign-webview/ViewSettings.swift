// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK

/// WebKit's settings for a sign-in page: nothing that it does not need.
enum ViewSettings {
    static func make(userAgent: String?, announcesDevice: Bool) -> OpaquePointer? {
        let settings = webkit_settings_new()
        webkit_settings_set_hardware_acceleration_policy(settings, WEBKIT_HARDWARE_ACCELERATION_POLICY_NEVER)
        webkit_settings_set_enable_developer_extras(settings, 0)
        // Standard output is for events.
        webkit_settings_set_enable_write_console_messages_to_stdout(settings, 0)
        webkit_settings_set_enable_page_cache(settings, 0)
        webkit_settings_set_enable_fullscreen(settings, 0)
        webkit_settings_set_enable_back_forward_navigation_gestures(settings, 0)
        webkit_settings_set_javascript_can_access_clipboard(settings, 0)
        webkit_settings_set_allow_file_access_from_file_urls(settings, 0)
        webkit_settings_set_allow_universal_access_from_file_urls(settings, 0)
        webkit_settings_set_allow_top_navigation_to_data_urls(settings, 0)
        // WebRTC would connect around the proxy.
        webkit_settings_set_enable_webrtc(settings, 0)
        webkit_settings_set_enable_media_stream(settings, 0)
        webkit_settings_set_enable_mediasource(settings, 0)
        webkit_settings_set_enable_encrypted_media(settings, 0)
        webkit_settings_set_enable_webgl(settings, 0)
        webkit_settings_set_enable_webaudio(settings, 0)
        // `window.open` without a click arrives as the signal `create`, which refuses or reports it.
        webkit_settings_set_javascript_can_open_windows_automatically(settings, 1)
        if let userAgent { webkit_settings_set_user_agent(settings, userAgent) }
        if announcesDevice, let name = webkit_settings_get_user_agent(settings) {
            // The suffix that MS-PKAP's servers expect, in the words of Microsoft's clients.
            webkit_settings_set_user_agent(settings, String(cString: name) + " PKeyAuth/1.0")
        }
        return settings
    }
}
