/* SPDX-License-Identifier: MIT
 *
 * What a report page is made of, as text: the files of tools/report, put into the tool by the
 * build.
 */
#ifndef TAMIZ_TOOLS_REPORT_H
#define TAMIZ_TOOLS_REPORT_H

extern const char report_uplot_js[], report_uplot_css[], report_uplot_license[];
extern const char report_page_css[], report_page_js[];

#endif
