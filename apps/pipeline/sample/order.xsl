<?xml version="1.0" encoding="utf-8"?>
<!-- Step 2: the rows by their sums, the greatest first, and the menu of the site. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:import href="common.xsl"/>
  <xsl:template match="page">
    <page>
      <xsl:copy-of select="document('menu.xml')/menu"/>
      <xsl:apply-templates select="@*|node()"/>
    </page>
  </xsl:template>
  <xsl:template match="table">
    <table>
      <xsl:apply-templates select="@*"/>
      <xsl:apply-templates select="row">
        <xsl:sort select="@sum" data-type="number" order="descending"/>
        <xsl:sort select="@name"/>
      </xsl:apply-templates>
    </table>
  </xsl:template>
</xsl:stylesheet>
